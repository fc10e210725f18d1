// Package gemini implements Gemini CLI's dialect on the sessions of package mcp: two tools and the ide/*
// notifications.
package gemini
