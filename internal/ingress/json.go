package ingress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/jsontext"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const form = `{"kind":"user_message","text":"…","mode":"steer","reply_to":"msg3"}; only text is needed`

var kinds = map[string]rollcallv1.MailKind{
	"":                rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE,
	"user_message":    rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE,
	"framework_alert": rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT,
}

var modes = map[string]rollcallv1.MailMode{
	"":          rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED,
	"interrupt": rollcallv1.MailMode_MAIL_MODE_INTERRUPT,
	"steer":     rollcallv1.MailMode_MAIL_MODE_STEER,
	"queue":     rollcallv1.MailMode_MAIL_MODE_QUEUE,
}

// message reads a JSON message. Fields that it does not know are ignored; names
// count exactly, unlike in encoding/json's own matching.
func message(to string, data []byte) (*rollcallv1.Command, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) {
		return nil, check(string(data))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		why := "it is null"
		if err != nil {
			why = err.Error()
		}
		return nil, domain.Refuse("json-invalid", refused, "it is no JSON object: "+head(why), "send "+form)
	}
	var kind, words, mode, replyTo string
	for name, into := range map[string]*string{"kind": &kind, "text": &words, "mode": &mode, "reply_to": &replyTo} {
		if err := field(fields, name, into); err != nil {
			return nil, err
		}
	}
	k, known := kinds[kind]
	if !known {
		return nil, domain.Refuse("kind-refused", refused, fmt.Sprintf("outsiders cannot send mail of kind %q", head(kind)), "choose user_message or framework_alert")
	}
	m, known := modes[mode]
	switch {
	case !known:
		return nil, domain.Refuse("mode-invalid", refused, fmt.Sprintf("there is no mode %q", head(mode)), "choose interrupt, steer or queue, or leave mode out")
	case mode != "" && k != rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		return nil, domain.Refuse("mode-invalid", refused, "only a user_message has a mode", "leave mode out")
	}
	if err := check(words); err != nil {
		return nil, err
	}
	return post(&rollcallv1.PostMessage{To: to, Kind: k, Mode: m, Body: &rollcallv1.Body{Text: words}, ReplyTo: replyTo}), nil
}

// field reads a string, or nothing where it is absent or null.
func field(fields map[string]json.RawMessage, name string, into *string) error {
	raw, ok := fields[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return domain.Refuse("json-invalid", refused, fmt.Sprintf("its field %q is no string", name), "send "+form)
	}
	if half := jsontext.HalfCharacter(raw); half != "" {
		return domain.Refuse("text-invalid", refused, fmt.Sprintf("its field %q has half of a character (a lone %s)", name, half),
			`write both halves, such as \uD83D\uDE00, or the character itself`)
	}
	return nil
}
