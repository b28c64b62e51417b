"""The language of conditions: a part of SQL-92, as RocketMQ has it (``SelectorParser.jj``).

Other than there, NOT binds less than comparisons, as in SQL, so that ``NOT a = 1`` means what it says; LIKE is known;
and nothing may follow the expression.
"""

GRAMMAR = r"""
?start: any
?any: every (_OR every)*
?every: denial (_AND denial)*
?denial: relation
       | NOT denial                                  -> deny

?relation: comparison
         | relation "=" comparison                   -> equal
         | relation "<>" comparison                  -> unequal
         | relation IS NULL                          -> missing
         | relation IS NOT NULL                      -> present

?comparison: signed
           | comparison ORDER signed                 -> order
           | comparison _BETWEEN signed _AND signed            -> between
           | comparison NOT _BETWEEN signed _AND signed        -> beyond
           | comparison _IN "(" TEXT ("," TEXT)* ")"           -> one_of
           | comparison NOT _IN "(" TEXT ("," TEXT)* ")"       -> none_of
           | comparison PART TEXT                              -> part
           | comparison NOT PART TEXT                          -> no_part
           | comparison _LIKE TEXT (_ESCAPE TEXT)?             -> like
           | comparison NOT _LIKE TEXT (_ESCAPE TEXT)?         -> unlike

?signed: operand
       | "+" signed                                  -> positive
       | MINUS signed                                -> negative

?operand: TEXT                                       -> text
        | WHOLE                                      -> whole
        | FLOAT                                      -> fraction
        | TRUE                                       -> true
        | FALSE                                      -> false
        | NULL                                       -> null
        | NAME                                       -> property
        | "(" any ")"                                -> nested

_OR.2: /OR(?![\w$])/i
_AND.2: /AND(?![\w$])/i
NOT.2: /NOT(?![\w$])/i
IS.2: /IS(?![\w$])/i
NULL.2: /NULL(?![\w$])/i
_BETWEEN.2: /BETWEEN(?![\w$])/i
_IN.2: /IN(?![\w$])/i
_LIKE.2: /LIKE(?![\w$])/i
_ESCAPE.2: /ESCAPE(?![\w$])/i
PART.2: /(?:CONTAINS|STARTSWITH|ENDSWITH)(?![\w$])/i
TRUE.2: /TRUE(?![\w$])/i
FALSE.2: /FALSE(?![\w$])/i
ORDER: /<=|>=|<(?!>)|>/
MINUS: "-"

TEXT: /'(?:[^']|'')*'/
FLOAT.2: /[0-9]+\.[0-9]*(?:E[+-]?[0-9]+)?|\.[0-9]+(?:E[+-]?[0-9]+)?|[0-9]+E[+-]?[0-9]+/i
WHOLE.1: /(?:0|[1-9][0-9]*L?)(?![0-9])/i
NAME: /(?!(?:NOT|AND|OR|BETWEEN|IN|TRUE|FALSE|NULL|IS|CONTAINS)(?![\w$]))[a-z_$][a-z0-9_$]*/i

COMMENT: /--[^\n\r]*|\/\*[^*]*\*+(?:[^\/*][^*]*\*+)*\//
SPACE: /[ \t\n\r\f]+/
%ignore COMMENT
%ignore SPACE
"""

READABLE = {
    "$END": "the end",
    "_OR": "OR", "_AND": "AND", "NOT": "NOT", "IS": "IS", "NULL": "NULL", "_BETWEEN": "BETWEEN", "_IN": "IN",
    "_LIKE": "LIKE", "_ESCAPE": "ESCAPE", "PART": "CONTAINS, STARTSWITH or ENDSWITH", "TRUE": "TRUE", "FALSE": "FALSE",
    "ORDER": "<, <=, > or >=", "MINUS": "-", "TEXT": "a text in '…'", "FLOAT": "a number", "WHOLE": "a number",
    "NAME": "a property", "LPAR": "(", "RPAR": ")", "COMMA": "a comma", "EQUAL": "=", "PLUS": "+",
    "__ANON_0": "<>",
}  # fmt: skip
"""The terminals, as people call them."""
