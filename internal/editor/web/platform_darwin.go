package web

// platform names the system for the page, which writes paths and keys as it does.
const platform = "darwin"
