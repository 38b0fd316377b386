// Package auth makes the roles of an installation on NATS: nodes, clients and
// auditors, each in an account of its own, by the operator mode of NATS. Nothing
// is shared between accounts but what roles.go names.
//
// Init and Add write a directory; what lies in it is in layout.go. Load reads
// the folder of it that was copied to a machine, the bundle.
//
// Read next: roles.go, which is the whole of who may do what.
package auth
