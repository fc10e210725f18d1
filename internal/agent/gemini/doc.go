// Package gemini is Gemini CLI's own part of the agent port: its two tools and its ide/* notifications, on the sessions of
// package mcp.
package gemini
