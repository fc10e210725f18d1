// Package prompt is the text side of extensions: what a model is told of them at the start of a
// session, how it calls them in its own text, and how the results go back to it (SPEC P-1, P-2).
package prompt
