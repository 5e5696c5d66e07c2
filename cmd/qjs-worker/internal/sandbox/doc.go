// Package sandbox restricts the worker itself: what it inherited is closed, and what
// it may still use is bounded, before the first untrusted byte arrives.
//
// Today it closes descriptors and sets resource limits. Namespaces, Landlock, seccomp
// and cgroups are not applied yet: until they are, a guest that breaks out of both
// QuickJS and wazero has the rights of the supervisor's user.
package sandbox
