package model

import (
	"crypto/sha256"
	"regexp"
	"strings"
)

// A profile is what a family of models wants otherwise than the rest. It
// follows from the model's name alone, so that the request of an old step can
// be written again from the log.
type profile struct {
	// shortIDs: call ids must be nine letters and digits.
	shortIDs bool
	// speakAfterTools: a user message must not follow a tool result.
	speakAfterTools bool
	// reasoning of the open turn must be sent back with its calls.
	reasoning bool
}

func profileOf(model string) profile {
	model = strings.ToLower(model)
	has := func(names ...string) bool {
		for _, n := range names {
			if strings.Contains(model, n) {
				return true
			}
		}
		return false
	}
	if has("mistral", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral") {
		return profile{shortIDs: true, speakAfterTools: true}
	}
	// Distilled models only carry the name.
	return profile{reasoning: has("deepseek", "kimi") && !has("distill")}
}

// messages are the history in the profile's form.
func (p profile) messages(messages []Message) []wireMessage {
	lastUser := -1
	for i, m := range messages {
		if m.Role == "user" {
			lastUser = i
		}
	}
	out := make([]wireMessage, 0, len(messages))
	for i, m := range messages {
		w := wireMessage{Role: m.Role, Content: m.Content}
		switch m.Role {
		case "system":
			if strings.TrimSpace(m.Content) == "" {
				continue
			}
		case "tool":
			w.ToolCallID = p.callID(m.CallID)
			w.Content = orElse(m.Content, noOutput)
		case "assistant":
			if p.reasoning && i > lastUser && len(m.Calls) > 0 {
				w.Reasoning = m.Reasoning
			}
			for _, c := range m.Calls {
				w.ToolCalls = append(w.ToolCalls, wireCall{
					ID: p.callID(c.GetId()), Type: "function",
					Function: wireFunction{Name: wireName(c.GetName()), Arguments: wireArguments(c.GetArguments())},
					Extra:    wireExtra(c.GetExtra()),
				})
			}
			// With calls, an empty string is what most servers take: some refuse
			// null, others a missing content. Without calls it must not be empty.
			if w.Content = orElse(m.Content, noWords); len(m.Calls) > 0 && w.Content == noWords {
				w.Content = ""
			}
		default:
			w.Content = orElse(m.Content, noWords)
		}
		if p.speakAfterTools && m.Role == "user" && len(out) > 0 && out[len(out)-1].Role == "tool" {
			out = append(out, wireMessage{Role: "assistant", Content: noWords})
		}
		out = append(out, w)
	}
	return out
}

func orElse(s, instead string) string {
	if strings.TrimSpace(s) == "" {
		return instead
	}
	return s
}

var shortID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

func (p profile) callID(id string) string {
	if !p.shortIDs || shortID.MatchString(id) {
		return id
	}
	return makeID(id)
}

// makeID is nine letters and digits that depend on s alone: the form of id
// that every server accepts.
func makeID(s string) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sum := sha256.Sum256([]byte(s))
	id := make([]byte, 9)
	for i := range id {
		id[i] = digits[int(sum[i])%len(digits)]
	}
	return string(id)
}
