package domain

import (
	"strconv"
	"strings"
)

// numbered reads the number of an id such as t12.
func numbered(id, prefix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, prefix)
	if !ok || digits == "" || digits[0] == '0' || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func nth(prefix string, n uint64) string { return prefix + strconv.FormatUint(n, 10) }

func memberIndex(id string) (int, bool) {
	if id == LeadID {
		return 0, true
	}
	n, ok := numbered(id, "m")
	return int(n), ok && n < 1<<31
}
