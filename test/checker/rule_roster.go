package checker

import (
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// openings: the first event opens the conversation, under the tenant and id that
// it is stored by, and the Lead joins in the same commit. It is not opened again.
func openings(b *book, say say) watcher {
	opened := false
	return watcher{
		event: func(f fact) {
			o := f.GetConversationOpened()
			switch {
			case o == nil && !opened:
				say("something happens before the conversation is opened")
			case o != nil && opened:
				say("the conversation is opened again")
			case o != nil && (o.GetConversation() != b.log.Conversation || o.GetTenant() != b.log.Tenant):
				say("it opens %s of tenant %s, and is stored as %s of tenant %s", o.GetConversation(), o.GetTenant(), b.log.Conversation, b.log.Tenant)
			}
			opened = true
		},
		end: func(c *rollcallv1.Commit) {
			if c.GetVersion() == 1 && b.members[leadID] == nil {
				say("the conversation is opened without a Lead")
			}
		},
	}
}

// rosters: ids and names are never used again, one team is active at a time, the
// Lead stays, and who is shut down, or of a dissolved team, does nothing more.
func rosters(b *book, say say) watcher {
	names, teams := map[string]string{}, map[string]bool{}
	added := func(a *rollcallv1.MemberAdded) {
		lead := a.GetRole() == rollcallv1.MemberRole_MEMBER_ROLE_LEAD
		switch holder, used := names[a.GetName()]; {
		case b.members[a.GetMember()] != nil:
			say("%s joins, and the id %s was used before", a.GetName(), a.GetMember())
		case used:
			say("%s joins under the name %q, which is that of %s", a.GetMember(), a.GetName(), holder)
		case lead != (a.GetMember() == leadID):
			say("%s (%s) joins with the role %v", a.GetMember(), a.GetName(), a.GetRole())
		case !lead && (b.activeTeam() == nil || b.activeTeam().id != a.GetTeam()):
			say("%s (%s) joins the team %q, which is not the active one", a.GetMember(), a.GetName(), a.GetTeam())
		}
		names[a.GetName()] = a.GetMember()
	}
	return watcher{
		event: func(f fact) {
			switch k := f.GetKind().(type) {
			case *rollcallv1.Event_MemberAdded:
				added(k.MemberAdded)
				return
			case *rollcallv1.Event_TeamCreated:
				id := k.TeamCreated.GetTeam()
				if active := b.activeTeam(); active != nil {
					say("team %s is made while team %s is active", id, active.id)
				} else if teams[id] {
					say("a team is made, and the id %s was used before", id)
				}
				teams[id] = true
			case *rollcallv1.Event_TeamDissolved:
				if t := b.teams[k.TeamDissolved.GetTeam()]; t == nil || !t.active {
					say("team %q is dissolved, and is not active", k.TeamDissolved.GetTeam())
				}
			case *rollcallv1.Event_MemberShutdown:
				if k.MemberShutdown.GetMember() == leadID {
					say("the Lead is shut down")
				}
			}
			known(b, say, f)
		},
		end: func(*rollcallv1.Commit) {
			for _, m := range b.order {
				if t := b.teams[m.team]; t != nil && !t.active && !m.gone {
					say("team %s is dissolved, and its member %v lives", t.id, m)
				}
			}
		},
	}
}

// known reports events about a member that nobody added, or that was shut down.
// That such a member begins or goes on with a run is for other rules to say.
func known(b *book, say say, f fact) {
	about, is := f.body.(interface{ GetMember() string })
	if !is {
		return
	}
	switch m := b.members[about.GetMember()]; {
	case m == nil:
		say("it is about %q, who is no member", about.GetMember())
	case m.gone && !f.inside && f.GetRunStarted() == nil:
		say("it is about %v, who was shut down", m)
	}
}
