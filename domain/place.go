package domain

import (
	"strings"
	"unicode"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Ref is the place as events carry it.
func (p Place) Ref() *rollcallv1.Ref {
	return &rollcallv1.Ref{Version: p.Version, Index: p.Index, Size: p.Size}
}

// weight is about how many bytes of text an event carries to a model.
func weight(e *rollcallv1.Event) uint64 {
	switch e := e.GetKind().(type) {
	case *rollcallv1.Event_MessageDelivered:
		size := bodySize(e.MessageDelivered.GetBody())
		switch e.MessageDelivered.GetKind() {
		case rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
			return size
		case rollcallv1.MailKind_MAIL_KIND_BRIEF:
			return min(size, ShownFrameBytes)
		}
		return min(size, ShownMailBytes)
	case *rollcallv1.Event_ModelReplied:
		n := bodySize(e.ModelReplied.GetText()) + bodySize(e.ModelReplied.GetReasoning())
		for _, c := range e.ModelReplied.GetCalls() {
			n += min(uint64(len(c.GetArguments()))+c.GetArgumentsBlob().GetSize(), ShownArguments)
		}
		return n
	case *rollcallv1.Event_ToolCallFinished:
		return min(bodySize(e.ToolCallFinished.GetOutput()), ShownOutput)
	case *rollcallv1.Event_LeadReplied:
		return bodySize(e.LeadReplied.GetText())
	}
	return 0
}

func bodySize(b *rollcallv1.Body) uint64 {
	return uint64(len(b.GetText())) + b.GetBlob().GetSize()
}

func emptyBody(b *rollcallv1.Body) bool {
	invisible := func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
	return b.GetBlob() == nil && strings.TrimFunc(b.GetText(), invisible) == ""
}

func textBody(s string) *rollcallv1.Body { return &rollcallv1.Body{Text: s} }
