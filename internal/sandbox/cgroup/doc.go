// Package cgroup counts the memory and the processes of one run, in a control group of Linux (cgroup v2).
package cgroup
