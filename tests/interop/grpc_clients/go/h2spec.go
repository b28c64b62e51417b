//go:build h2spec

// Names h2spec's command, so that go.mod and go.sum pin it and what it needs.
package main

import _ "github.com/summerwind/h2spec/cmd/h2spec"
