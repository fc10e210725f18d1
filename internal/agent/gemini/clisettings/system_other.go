//go:build !darwin && !windows

package clisettings

// systemSettings is the file of this machine's.
const systemSettings = "/etc/gemini-cli/settings.json"
