package mailbox

import "github.com/rollcall-dev/rollcall/domain"

type teamCreateArgs struct {
	Name string `json:"name" jsonschema:"what the team is called"`
}

func teamCreate(d *domain.Decision, a teamCreateArgs) (any, *domain.Refusal) {
	t, refusal := d.CreateTeam(a.Name, "")
	if refusal != nil {
		return nil, refusal
	}
	return struct {
		Team string `json:"team"`
		Name string `json:"name"`
	}{t.ID, t.Name}, nil
}

type memberAddArgs struct {
	Name          string `json:"name" jsonschema:"a new name in any script; names are never used again in a conversation"`
	AgentType     string `json:"agent_type,omitempty" jsonschema:"kind of agent; general when left out"`
	InitialPrompt string `json:"initial_prompt" jsonschema:"the assignment: all that the new member will know"`
}

type memberOut struct {
	Member string `json:"member"`
	Name   string `json:"name"`
	Note   string `json:"note,omitempty"`
}

func memberAdd(d *domain.Decision, a memberAddArgs) (any, *domain.Refusal) {
	m, refusal := d.AddMember(a.Name, a.AgentType, a.InitialPrompt)
	if refusal != nil {
		return nil, refusal
	}
	return memberOut{m.ID, m.Name, "it starts on its assignment now; its mail wakes you"}, nil
}

type memberRemoveArgs struct {
	Name string `json:"name" jsonschema:"the member's name"`
}

func memberRemove(d *domain.Decision, a memberRemoveArgs) (any, *domain.Refusal) {
	m, refusal := d.RemoveMember(a.Name)
	if refusal != nil {
		return nil, refusal
	}
	return memberOut{m.ID, m.Name, "shut down; its open tasks are free again"}, nil
}

type noArgs struct{}

func teamDissolve(d *domain.Decision, _ noArgs) (any, *domain.Refusal) {
	if refusal := d.DissolveTeam(); refusal != nil {
		return nil, refusal
	}
	return struct {
		Note string `json:"note"`
	}{"the team is dissolved: its members are shut down and its open tasks cancelled"}, nil
}

type sendArgs struct {
	To           string `json:"to" jsonschema:"a member's name, Lead, or user for the operator"`
	Text         string `json:"text" jsonschema:"what the recipient must know or do"`
	WaitForReply bool   `json:"wait_for_reply,omitempty" jsonschema:"sleep until the reply: your turn ends after this step. The Lead cannot"`
	ReplyTo      string `json:"reply_to,omitempty" jsonschema:"id of the message you answer, such as msg3"`
}

type sendOut struct {
	Message string `json:"message"`
	To      string `json:"to"`
	Note    string `json:"note,omitempty"`
}

func sendMessage(d *domain.Decision, a sendArgs) (any, *domain.Refusal) {
	id, refusal := d.Send(domain.Send{To: a.To, Text: a.Text, ReplyTo: a.ReplyTo, Wait: a.WaitForReply})
	if refusal != nil {
		return nil, refusal
	}
	out := sendOut{Message: id, To: domain.User}
	to := d.State().Recipient(a.To)
	if to != nil {
		out.To = to.Name
		for _, w := range to.Waits {
			if w.Awaited == d.Caller().ID {
				out.Note = to.Name + " still waits for your answer to " + w.Message + ": only a message with that reply_to ends its wait"
			}
		}
		if ring := d.RingNote(a.To); a.WaitForReply && ring != "" {
			out.Note = ring
		}
	}
	if a.WaitForReply {
		out.Note = "your turn ends after this step; the reply wakes you"
	}
	return out, nil
}
