// Package ingress reads what outsiders publish to the inbox and makes commands
// of it: plain text, a JSON message, or a command in protobuf. It decides
// nothing: whether a command may be is the domain's to say.
//
// What can never be a command is a *domain.Refusal that says what to send
// instead; its place is the dead letters.
package ingress

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Media types that are understood. No type at all is plain text.
const (
	typeText = "text/plain"
	typeJSON = "application/json"
)

// maxID is the longest Rollcall-Id in bytes.
const maxID = 128

const (
	refused     = "the message is not taken in"
	useFile     = "put it into a file and give it with --input"
	sendAsUTF8  = "send it as UTF-8, or as a file with --input"
	knownTypes  = "send plain text without a Content-Type, or application/json to a member, or application/protobuf to _"
	chooseOwnID = "choose an id of your own, such as a ULID"
)

// Decode makes a command of a message that was stored at the given sequence and
// time. Errors: *domain.Refusal, nothing else.
func Decode(e eventstore.Envelope, seq uint64, at time.Time) (*rollcallv1.Command, error) {
	if len(e.Data) > eventstore.MaxInbox {
		return nil, domain.Refuse("text-too-long", refused, fmt.Sprintf("it has %d bytes, at most %d are allowed", len(e.Data), eventstore.MaxInbox), useFile)
	}
	if !domain.ValidToken(e.To) {
		return nil, domain.Refuse("member-not-found", refused, fmt.Sprintf("%q is no id of a member", head(e.To)), "publish to a member's short id, such as lead or m1")
	}
	media, err := mediaType(header(e, eventstore.HeaderContentType))
	if err != nil {
		return nil, err
	}
	var cmd *rollcallv1.Command
	switch {
	case e.To == eventstore.ToCommand && media == eventstore.ContentTypeProtobuf:
		cmd, err = command(e.Data)
	case e.To == eventstore.ToCommand:
		return nil, domain.Refuse("content-type-unknown", refused, fmt.Sprintf("the subject of commands takes no %s", media),
			"publish a message to a member, such as lead; only a Command in application/protobuf goes to _")
	case media == eventstore.ContentTypeProtobuf:
		return nil, domain.Refuse("content-type-unknown", refused, "a member takes messages, not commands", "publish the Command to _ instead of a member")
	case media == typeJSON:
		cmd, err = message(e.To, e.Data)
	default:
		cmd, err = text(e.To, e.Data)
	}
	if err != nil {
		return nil, err
	}
	return identify(cmd, header(e, eventstore.HeaderID), seq, at)
}

// ReplyTo is the subject that the answer to a message goes to, or nothing: the
// node answers with rights of its own, and nobody may point it at the server's
// subjects, or at ours, where an answer would be taken for mail or for a commit.
func ReplyTo(e eventstore.Envelope) string {
	subject := header(e, eventstore.HeaderReply)
	first, _, _ := strings.Cut(subject, ".")
	if first == "rollcall" || strings.HasPrefix(first, "$") || strings.ContainsFunc(subject, notInSubject) {
		return ""
	}
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" {
			return ""
		}
	}
	return subject
}

// notInSubject reports what never stands in the subject of one answer.
func notInSubject(r rune) bool {
	return r == '*' || r == '>' || r == unicode.ReplacementChar || unicode.IsSpace(r) || unicode.IsControl(r)
}

// header finds a header in any case: publishers write them by hand.
func header(e eventstore.Envelope, name string) string {
	if v, ok := e.Header[name]; ok {
		return v
	}
	for k, v := range e.Header {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

func mediaType(value string) (string, error) {
	if strings.TrimSpace(value) == "" {
		return typeText, nil
	}
	media, params, err := mime.ParseMediaType(value)
	if err != nil {
		return "", domain.Refuse("content-type-unknown", refused, fmt.Sprintf("its Content-Type %q cannot be read", head(value)), knownTypes)
	}
	switch media {
	case typeText, typeJSON, eventstore.ContentTypeProtobuf:
	default:
		return "", domain.Refuse("content-type-unknown", refused, fmt.Sprintf("its Content-Type is %q", head(media)), knownTypes)
	}
	if c := params["charset"]; c != "" && !strings.EqualFold(c, "utf-8") && !strings.EqualFold(c, "us-ascii") {
		return "", domain.Refuse("text-invalid", refused, fmt.Sprintf("its charset is %q", head(c)), sendAsUTF8)
	}
	return media, nil
}

// text is plain text: the operator's words.
func text(to string, data []byte) (*rollcallv1.Command, error) {
	words := string(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if err := check(words); err != nil {
		return nil, err
	}
	return post(&rollcallv1.PostMessage{To: to, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Body: &rollcallv1.Body{Text: words}}), nil
}

func post(p *rollcallv1.PostMessage) *rollcallv1.Command {
	return &rollcallv1.Command{Actor: domain.Operator, Kind: &rollcallv1.Command_PostMessage{PostMessage: p}}
}

// check refuses words that could not stand in the log.
func check(words string) error {
	switch {
	case !utf8.ValidString(words):
		return domain.Refuse("text-invalid", refused, "it is not valid UTF-8", sendAsUTF8)
	case strings.ContainsRune(words, 0):
		return domain.Refuse("text-invalid", refused, "it contains a NUL character", "leave it out, or send a file with --input")
	case strings.TrimSpace(words) == "":
		return domain.Refuse("text-empty", refused, "it is empty", "say something")
	}
	return nil
}

// identify gives the command its id: the publisher's, or one made of its place
// in the inbox, so that a redelivery is the same command. Ids that the inbox
// and the timers make are not the publisher's to take.
func identify(cmd *rollcallv1.Command, id string, seq uint64, at time.Time) (*rollcallv1.Command, error) {
	if id == "" {
		id = cmd.GetId()
	}
	cmd.Id = id
	if id == "" {
		cmd.Id = fmt.Sprintf("in-%d-%d", seq, at.UnixNano())
		return cmd, nil
	}
	why := ""
	switch {
	case !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		why = "it has characters that are not visible"
	case len(id) > maxID:
		why = fmt.Sprintf("it has %d bytes, at most %d are allowed", len(id), maxID)
	case strings.HasPrefix(id, "in-"), strings.HasPrefix(id, "timer-") && cmd.GetFireTimer() == nil:
		why = "ids that begin with in- and timer- are made by Rollcall"
	}
	if why != "" {
		return nil, domain.Refuse("id-invalid", refused, fmt.Sprintf("the Rollcall-Id %q cannot be used: %s", head(id), why), chooseOwnID)
	}
	return cmd, nil
}

// head is what an error shows of a publisher's value.
func head(s string) string {
	const most = 60
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
