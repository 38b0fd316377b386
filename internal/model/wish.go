package model

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// wishOf is how long a server asks to be left alone: by Retry-After in seconds
// or as a date, by the millisecond header, by the reset times of its limits,
// or in the words of its refusal. 0 means that it does not say.
func wishOf(h http.Header, status int, words string, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return seconds(ms / 1000)
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(strings.TrimSuffix(v, "s"), 64); err == nil {
			return seconds(s)
		}
		if at, err := http.ParseTime(v); err == nil {
			// By the server's own clock, when it shows it.
			if date, err := http.ParseTime(h.Get("Date")); err == nil {
				now = date
			}
			return max(0, at.Sub(now))
		}
	}
	if status != http.StatusTooManyRequests {
		return 0
	}
	for _, what := range [...]string{"Requests", "Tokens"} {
		if strings.TrimSpace(h.Get("X-Ratelimit-Remaining-"+what)) == "0" {
			if d, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + what)); err == nil && d > 0 {
				return d
			}
		}
	}
	if m := retryWords.FindStringSubmatch(words); m != nil {
		if d, err := time.ParseDuration(m[1]); err == nil {
			return max(0, d)
		}
	}
	return 0
}

// "Please try again in 1m2.5s", "retry in 34.07s", "retryDelay": "34s".
var retryWords = regexp.MustCompile(`(?i)(?:(?:try again|retry)\s+in\s+|"?retryDelay"?\s*:\s*"?)((?:[0-9.]+(?:ms|h|m|s))+)`)

// seconds bounds what servers write; a day is more than anything waits for.
func seconds(s float64) time.Duration {
	if !(s > 0) { // also NaN
		return 0
	}
	return time.Duration(min(s, 86400) * float64(time.Second))
}
