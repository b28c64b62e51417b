"""The admin service beside others, inside and out."""
