package dag

import "github.com/rollcall-dev/rollcall/domain"

type sendArgs struct {
	To           string `json:"to" jsonschema:"a member's name, Lead, or user for the operator"`
	Text         string `json:"text" jsonschema:"what the recipient must know or do"`
	WaitForReply bool   `json:"wait_for_reply,omitempty" jsonschema:"sleep until the reply: your turn ends after this step and your task stays unfinished. The Lead cannot"`
	ReplyTo      string `json:"reply_to,omitempty" jsonschema:"id of the message you answer, such as msg3"`
}

type sent struct {
	Message string `json:"message"`
	To      string `json:"to"`
	Note    string `json:"note,omitempty"`
}

func sendMessage(d *domain.Decision, a sendArgs) (any, *domain.Refusal) {
	id, refusal := d.Send(domain.Send{To: a.To, Text: a.Text, ReplyTo: a.ReplyTo, Wait: a.WaitForReply})
	if refusal != nil {
		return nil, refusal
	}
	out := sent{Message: id, To: domain.User}
	if to := d.State().Recipient(a.To); to != nil {
		out.To = to.Name
		for _, w := range to.Waits {
			if w.Awaited == d.Caller().ID {
				out.Note = to.Name + " still waits for your answer to " + w.Message + ": only a message with that reply_to ends its wait"
			}
		}
	}
	if a.WaitForReply {
		out.Note = "your turn ends after this step; the reply wakes you"
		if ring := d.RingNote(a.To); ring != "" {
			out.Note += "; but " + ring
		}
	}
	return out, nil
}

type completeArgs struct {
	Summary string   `json:"summary" jsonschema:"what you found or made, so that others can use it without your context"`
	Paths   []string `json:"paths,omitempty" jsonschema:"files of your workspace that you deliver; empty for a short finding"`
}

type completed struct {
	Task string `json:"task_id"`
	Note string `json:"note"`
}

func complete(d *domain.Decision, a completeArgs) (any, *domain.Refusal) {
	t, refusal := d.Complete(a.Summary, a.Paths)
	if refusal != nil {
		return nil, refusal
	}
	return completed{t.ID, "delivered; your turn ends"}, nil
}
