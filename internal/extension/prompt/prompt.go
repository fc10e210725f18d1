// Package prompt is the text side of extensions: what a model learns about them at the start of a session, how it
// calls them in its own text, and how results return to it (SPEC P-1, P-2).
package prompt
