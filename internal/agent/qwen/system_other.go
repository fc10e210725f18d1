//go:build !darwin && !windows

package qwen

// systemSettings is the file of this machine's.
const systemSettings = "/etc/qwen-code/settings.json"
