package api

// What the service's subjects begin with. Clients reach their tenant's part of
// the first two. The others only the account of the nodes has: by prefixAdmin
// the installation's operators ask, by prefixNode one node another. Package auth
// holds them to it.
const (
	prefixAPI   = "rollcall.api."
	prefixFeed  = "rollcall.feed."
	prefixAdmin = "rollcall.admin."
	prefixNode  = "rollcall.node."
)
