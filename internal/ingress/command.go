package ingress

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// command reads a Command in protobuf. Only what an operator may ask, and a
// timer that fires, comes from outside: the outcomes of runs go straight to
// their conversation and never pass here.
func command(data []byte) (*rollcallv1.Command, error) {
	cmd := new(rollcallv1.Command)
	if err := proto.Unmarshal(data, cmd); err != nil {
		return nil, domain.Refuse("command-invalid", refused, "it is no rollcall.v1.Command in protobuf", "encode a Command of proto/rollcall/v1/command.proto")
	}
	actor := domain.Operator
	var bodies []*rollcallv1.Body
	switch k := cmd.GetKind().(type) {
	case *rollcallv1.Command_OpenConversation:
		if o := k.OpenConversation.GetObjective(); o.GetText() != "" {
			bodies = append(bodies, o)
		}
	case *rollcallv1.Command_PostMessage:
		bodies = append(bodies, k.PostMessage.GetBody())
	case *rollcallv1.Command_InterruptMember, *rollcallv1.Command_PauseConversation, *rollcallv1.Command_ResumeConversation,
		*rollcallv1.Command_RetryMember, *rollcallv1.Command_DissolveTeam, *rollcallv1.Command_ChangeTask,
		*rollcallv1.Command_RaiseBudget, *rollcallv1.Command_WriteFiles, *rollcallv1.Command_DecideApproval:
	case *rollcallv1.Command_FireTimer:
		actor = domain.Framework
	case nil:
		return nil, domain.Refuse("command-unknown", refused, "the command has no kind, or one that this build does not know", "use a client of the node's version: rollcall version")
	default:
		return nil, domain.Refuse("command-internal", refused, "the outcome of a run never comes from outside", "send what an operator may ask, such as post_message or interrupt_member")
	}
	if a := cmd.GetActor(); a != "" && a != actor {
		return nil, domain.Refuse("actor-refused", refused, fmt.Sprintf("from outside nobody speaks as %q", head(a)), "leave actor empty")
	}
	cmd.Actor = actor
	for _, b := range bodies {
		if b.GetBlob() != nil {
			continue
		}
		if err := check(b.GetText()); err != nil {
			return nil, err
		}
	}
	return cmd, nil
}
