package api

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Types of lines in the feed and in `run --json`.
const (
	TypeEvent  = "event"
	TypeText   = "text"
	TypeResult = "result"
)

// EventLine is an event as everybody outside sees it: one JSON object a line.
// Absent fields of data have their zero value. A text that lies in the object
// store is named by "<field>_blob" (its SHA-256) and "<field>_size" in place of
// "<field>".
type EventLine struct {
	Type         string `json:"type"`
	Conversation string `json:"conversation"`
	Version      uint64 `json:"version"`
	// Time of the commit, RFC 3339 in UTC.
	Time string `json:"time"`
	// Event is its name, such as TaskCompleted; Unknown for one that a newer
	// release wrote.
	Event string `json:"event"`
	// Member is the display name of whoever did it, or "operator", "framework".
	Member string         `json:"member"`
	Data   map[string]any `json:"data"`
}

// TextLine is streamed text of a model call that goes on. It is never stored.
type TextLine struct {
	Type         string `json:"type"`
	Conversation string `json:"conversation"`
	Member       string `json:"member"`
	Run          string `json:"run"`
	Step         uint32 `json:"step"`
	Text         string `json:"text"`
}

// Render gives the lines of a commit, in order. name resolves a member's short
// id to its display name.
func Render(conversation string, c *rollcallv1.Commit, name func(id string) string) []EventLine {
	lines := make([]EventLine, 0, len(c.GetEvents()))
	at := c.GetTime().AsTime().UTC().Format(time.RFC3339Nano)
	for _, e := range c.GetEvents() {
		kind, body := Kind(e)
		line := EventLine{
			Type: TypeEvent, Conversation: conversation, Version: c.GetVersion(),
			Time: at, Event: kind, Data: map[string]any{},
		}
		if body != nil {
			line.Data = object(body)
			if id := actor(body); id != "" {
				line.Member = name(id)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Kind is an event's name and its message; "Unknown" and nil for an event that
// this release does not know.
func Kind(e *rollcallv1.Event) (string, protoreflect.Message) {
	m := e.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("kind"))
	if field == nil {
		return "Unknown", nil
	}
	return string(field.Message().Name()), m.Get(field).Message()
}

// actor is the id of whoever did what the event says.
func actor(m protoreflect.Message) string {
	for _, name := range [...]protoreflect.Name{"member", "by", "from", "creator"} {
		if f := m.Descriptor().Fields().ByName(name); f != nil && f.Kind() == protoreflect.StringKind {
			if id := m.Get(f).String(); id != "" {
				return id
			}
		}
	}
	if m.Descriptor().Name() == "LeadReplied" {
		return domain.LeadID
	}
	return ""
}

var (
	bodyName      = new(rollcallv1.Body).ProtoReflect().Descriptor().FullName()
	timestampName = new(timestamppb.Timestamp).ProtoReflect().Descriptor().FullName()
)

// object renders a message's present fields under their proto names. Numbers
// stay numbers: no field of the log comes near 2^53.
func object(m protoreflect.Message) map[string]any {
	out := make(map[string]any)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.Name())
		switch {
		case f.IsList():
			list := make([]any, v.List().Len())
			for i := range list {
				list[i] = single(f, v.List().Get(i))
			}
			out[name] = list
		case f.Message() != nil && f.Message().FullName() == bodyName:
			body, _ := v.Message().Interface().(*rollcallv1.Body)
			if blob := body.GetBlob(); blob != nil {
				out[name+"_blob"], out[name+"_size"] = blob.GetSha256(), blob.GetSize()
			} else {
				out[name] = body.GetText()
			}
		default:
			out[name] = single(f, v)
		}
		return true
	})
	return out
}

func single(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if f.Message().FullName() == timestampName {
			ts, _ := v.Message().Interface().(*timestamppb.Timestamp)
			return ts.AsTime().UTC().Format(time.RFC3339Nano)
		}
		return object(v.Message())
	case protoreflect.EnumKind:
		return word(f.Enum(), v.Enum())
	default:
		return v.Interface()
	}
}

func word(d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) any {
	t, err := protoregistry.GlobalTypes.FindEnumByName(d.FullName())
	if err != nil {
		return int32(n)
	}
	return domain.Word(t.New(n))
}

// Names are the display names of a conversation's members, folded from its
// events.
type Names map[string]string

// Add takes in the names that a commit brings.
func (n Names) Add(c *rollcallv1.Commit) {
	for _, e := range c.GetEvents() {
		if m := e.GetMemberAdded(); m != nil {
			n[m.GetMember()] = m.GetName()
		}
		if s := e.GetSubagentStarted(); s != nil {
			n[s.GetSubagent()] = s.GetName()
		}
	}
}

// Of is the display name of an id; "operator", "framework", "user" and ids
// that are not known stay as they are.
func (n Names) Of(id string) string {
	if name, ok := n[id]; ok {
		return name
	}
	if id == domain.LeadID {
		return domain.LeadName
	}
	return id
}
