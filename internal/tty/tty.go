// Package tty shares one terminal between a command and a program that needs it occasionally. The command runs on
// its own terminal, whose output is passed on or held back.
package tty
