package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxWords bounds what an Error repeats of a server's words, in bytes.
const maxWords = 600

// complaint is what a server said about a failure, whatever its form: an
// object, an array, a string, a validator's "detail", a page of HTML.
type complaint struct {
	message string
	// kind and code as the server names them.
	kind, code string
	// status is a number among them that looks like an HTTP status.
	status int
	// all is the whole of it in lower case, to look for words in.
	all string
}

func complaintOf(body []byte) complaint {
	body = bytes.TrimSpace(body[:min(len(body), maxRefusal)])
	var c complaint
	var v any
	switch {
	case len(body) == 0:
	case body[0] == '<':
		c.message = pageWords(body)
	case json.Unmarshal(body, &v) == nil:
		c.read(v, 0)
		if c.message == "" {
			c.message = string(body)
		}
	default:
		c.message = string(body)
	}
	c.message = shorten(c.message)
	c.all = strings.ToLower(string(body[:min(len(body), 16<<10)]))
	return c
}

// read collects from any JSON; what is nearest to the outside wins, except
// that an "error" inside speaks before its surroundings.
func (c *complaint) read(v any, depth int) {
	if depth > 8 {
		return
	}
	switch v := v.(type) {
	case string:
		c.say(v)
	case []any:
		for _, e := range v {
			c.read(e, depth+1)
		}
	case map[string]any:
		for _, name := range [...]string{"error", "errors", "detail"} {
			if inner, ok := v[name]; ok && inner != nil {
				c.read(inner, depth+1)
			}
		}
		// An error that is a mere string often only names its kind, as in "Bad
		// Request" or "TypeError": what went wrong stands beside it.
		_, bare := v["error"].(string)
		for _, name := range [...]string{"message", "msg", "error_description", "title"} {
			if (bare || c.message == "") && v[name] != nil {
				c.read(v[name], depth+1)
			}
		}
		c.kind = orElse(c.kind, text(v["type"]))
		for _, name := range [...]string{"code", "status"} {
			s := text(v[name])
			if n, err := strconv.Atoi(s); err == nil && n >= 400 && n < 600 {
				c.status = max(c.status, n)
			} else {
				c.code = orElse(c.code, s)
			}
		}
		if s := text(v["failed_generation"]); s != "" {
			c.say("the model wrote: " + s)
		}
		if m, ok := v["metadata"].(map[string]any); ok {
			c.say(text(m["raw"]))
		}
	}
}

func (c *complaint) say(s string) {
	s = strings.TrimSpace(s)
	if s == "" || len(c.message) > maxWords || strings.Contains(c.message, s) {
		return // what is shown is there
	}
	if c.message != "" {
		c.message += "; "
	}
	c.message += s
}

// has reports whether any of the words, in lower case, is in the complaint.
func (c complaint) has(words ...string) bool {
	for _, w := range words {
		if strings.Contains(c.all, w) {
			return true
		}
	}
	return false
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

var (
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	pageSkip  = regexp.MustCompile(`(?is)<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>`)
)

// pageWords are what a person would read of a page.
func pageWords(page []byte) string {
	if m := pageTitle.FindSubmatch(page); m != nil && len(bytes.TrimSpace(m[1])) > 0 {
		return fmt.Sprintf("an HTML page titled %q", oneLine(string(m[1])))
	}
	return fmt.Sprintf("an HTML page that reads %q", shorten(oneLine(string(pageSkip.ReplaceAll(page, []byte(" "))))))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// shorten makes a server's words fit to be repeated: valid, on one line, bounded.
func shorten(s string) string {
	s = oneLine(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= maxWords {
		return s
	}
	cut := maxWords
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

var secretLike = regexp.MustCompile(`\bsk-[A-Za-z0-9_*.-]{6,}|(?i)\bbearer\s+[A-Za-z0-9_.~+/=-]{6,}`)

// without removes a key, and what looks like one, from words to be shown: some
// servers repeat the key that they refuse.
func without(key, s string) string {
	const removed = "[key removed]"
	if key = strings.TrimSpace(key); len(key) >= 8 {
		s = strings.ReplaceAll(s, key, removed)
	} else if key != "" {
		// A short one is hardly a secret; letters of other words stay.
		s = regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(key)+`(\W|$)`).ReplaceAllString(s, "${1}"+removed+"${2}")
	}
	return secretLike.ReplaceAllString(s, removed)
}
