// Package stage shares one terminal between a command and a program that needs
// it now and then: the command runs on a terminal of its own, whose words are passed on or kept.
package stage
