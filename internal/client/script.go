package client

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// truthy reports whether JavaScript treats a JSON value as true.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		f, err := v.Float64()
		return err != nil || f != 0
	}
	return true
}

// scriptText converts a JSON value as JavaScript's String() does.
func scriptText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return string(v)
		}
		return numberText(f)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			if e != nil {
				parts[i] = scriptText(e)
			}
		}
		return strings.Join(parts, ",")
	}
	return "[object Object]"
}

func numberText(f float64) string {
	switch abs := math.Abs(f); {
	case f == 0:
		return "0"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case abs >= 1e21 || abs < 1e-6:
		return strings.Replace(strconv.FormatFloat(f, 'e', -1, 64), "e-0", "e-", 1)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// parsePort reads a port as the CLI does, by JavaScript's parseInt; 0 when it is unusable.
func parsePort(s string) int {
	s = strings.TrimLeft(s, " \t\n\v\f\r\u00a0\ufeff\u2028\u2029")
	s = strings.TrimPrefix(s, "+")
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil || n <= 0 || n > 65535 {
		return 0
	}
	return n
}
