package attack

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopback is a port on 127.0.0.1, in network byte order. It is the one address that any
// host has and that tells nobody else of the attempt.
func loopback(port uint16) uintptr {
	return at(unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port<<8 | port>>8, Addr: [4]byte{127, 0, 0, 1}})
}

// abstract is the address of an abstract socket that nobody listens on.
func abstract() unix.RawSockaddrUnix {
	a := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	for i, c := range "\x00codemode-attack" {
		a.Path[i] = int8(c)
	}
	return a
}

func network() []Attack {
	socket := func(family, kind, protocol uintptr) func() syscall.Errno {
		return call(unix.SYS_SOCKET, family, kind, protocol)
	}
	// with makes a socket and does nr with it; the arguments after the descriptor are given.
	with := func(kind, nr uintptr, args ...uintptr) func() syscall.Errno {
		return prepared(nr, func() syscall.Errno {
			fd, e := raw(unix.SYS_SOCKET, unix.AF_INET, kind, 0)
			if e != 0 {
				return e
			}
			_, e = raw(nr, append([]uintptr{fd}, args...)...)
			return e
		})
	}
	// A message with a descriptor and no data: nothing is sent, and the channel stays whole.
	rights := struct {
		header unix.Cmsghdr
		fd     int32
		_      int32
	}{header: unix.Cmsghdr{Len: unix.SizeofCmsghdr + 4, Level: unix.SOL_SOCKET, Type: unix.SCM_RIGHTS}}
	message := unix.Msghdr{}
	pinned = append(pinned, &rights)
	message.Control, message.Controllen = (*byte)(unsafe.Pointer(&rights)), unix.SizeofCmsghdr+8

	return []Attack{
		{"connect to 127.0.0.1 by TCP", "services of the host", by(noNetwork, noTCP), with(unix.SOCK_STREAM, unix.SYS_CONNECT, loopback(1), unix.SizeofSockaddrInet4)},
		{"send to 127.0.0.1 by TCP Fast Open", "connect without connect(2)", by(noNetwork), with(unix.SOCK_STREAM, unix.SYS_SENDTO, text("x"), 1, unix.MSG_FASTOPEN, loopback(1), unix.SizeofSockaddrInet4)},
		{"send to 127.0.0.1 by UDP", "name servers; carry data off", by(noNetwork), with(unix.SOCK_DGRAM, unix.SYS_SENDTO, text("x"), 1, 0, loopback(9), unix.SizeofSockaddrInet4)}, // 9: discard
		{"bind a TCP port", "take connections", by(noTCP), with(unix.SOCK_STREAM, unix.SYS_BIND, loopback(0), unix.SizeofSockaddrInet4)},
		{"listen", "take connections", by(), call(unix.SYS_LISTEN, none, 1)},
		{"accept4", "take connections", by(), call(unix.SYS_ACCEPT4, none, 0, 0, 0)},
		{"connect to an abstract socket", "services of the host, as D-Bus", by(), prepared(unix.SYS_CONNECT, func() syscall.Errno {
			fd, e := raw(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if e != 0 {
				return e
			}
			_, e = raw(unix.SYS_CONNECT, fd, at(abstract()), 18)
			return e
		})},
		{"socket of IPv4, TCP", "a network", by(), socket(unix.AF_INET, unix.SOCK_STREAM, 0)},
		{"socket of IPv4, UDP", "a network", by(), socket(unix.AF_INET, unix.SOCK_DGRAM, 0)},
		{"socket of IPv6", "a network", by(), socket(unix.AF_INET6, unix.SOCK_STREAM, 0)},
		{"socket of IPv4, MPTCP", "TCP that Landlock does not know", by(), socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
		{"socket of IPv4, SCTP", "a source of kernel bugs", by(), socket(unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP)},
		{"socket of IPv4, raw", "forge packets", by(noCaps), socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
		{"socket of packets", "read and forge frames", by(noCaps), socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{"socket of Unix", "services of the host", by(), socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)},
		{"socket of netlink", "network configuration, a source of kernel bugs", by(), socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)},
		{"socket of the audit netlink", "what the host records", by(), socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)},
		{"socket of vsock", "the hypervisor, past a network namespace", by(), socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{"socket of the kernel's crypto", "a source of kernel bugs", by(), socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
		{"socket of Bluetooth", "a source of kernel bugs", by(), socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 0)},
		{"socket of CAN", "a source of kernel bugs", by(), socket(unix.AF_CAN, unix.SOCK_RAW, 1)},
		{"socket of TIPC", "a source of kernel bugs", by(), socket(unix.AF_TIPC, unix.SOCK_STREAM, 0)},
		{"socket of XDP", "frames past the network stack", by(noCaps), socket(unix.AF_XDP, unix.SOCK_RAW, 0)},
		{"socketpair", "more descriptors", by(), call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, room())},
		{"send a descriptor over the channel", "give the supervisor a file", by(), call(unix.SYS_SENDMSG, 3, at(message), unix.MSG_DONTWAIT)},
		{"take a descriptor from the channel", "what the supervisor did not mean", by(), call(unix.SYS_RECVMSG, 3, at(unix.Msghdr{}), unix.MSG_DONTWAIT|unix.MSG_PEEK)},
		{"peer of the channel", "the supervisor's process and user", by(), call(unix.SYS_GETSOCKOPT, 3, unix.SOL_SOCKET, unix.SO_PEERCRED, room(), at(uint32(12)))},
		{"set an option of the channel", "larger buffers than are allowed", by(), call(unix.SYS_SETSOCKOPT, 3, unix.SOL_SOCKET, unix.SO_KEEPALIVE, at(uint32(1)), 4)},
		{"shut the channel down", "have the supervisor wait", by(), call(unix.SYS_SHUTDOWN, 3, 99)}, // no such direction
	}
}
