#!/bin/sh
# Boots a small VM in which cgroup v2 is all there is, and runs the isolation's tests and the built
# programs in it: as root, and as nobody with a delegated cgroup. The steps are a table in
# test/vm/init/main.go. It needs no KVM, only patience: QEMU emulates the machine.
#
# QEMU, cpio and the kernel are Debian's. What is missing is installed if we are root; the kernel is
# kept in .cache/vm. Where that cannot be done the VM is skipped: one line, exit 0.
#
#   e2e-vm.sh            bin/ has to be built
#   E2E_VM=require       exit 1 instead of skipping
#   E2E_VM_VERBOSE=1     print what steps print, of all of them
#   E2E_VM_TIMEOUT=180   seconds for the VM
set -eu
cd "$(dirname -- "$0")/.."
cache=.cache/vm
kernel=$cache/vmlinuz

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

skip() {
	echo "e2e-vm: skipped: $1"
	[ "${E2E_VM-}" != require ] || exit 1
	exit 0
}

[ "$(uname -sm)" = 'Linux x86_64' ] || skip "the VM's kernel is for Linux on amd64, this is $(uname -sm)"
command -v timeout >/dev/null || skip 'timeout (coreutils) is missing'

updated=
# apt_update refreshes the package lists, once.
apt_update() {
	[ -z "$updated" ] || return 0
	updated=yes
	[ "$(id -u)" = 0 ] || return 0
	timeout 120 apt-get update -q >>"$tmp/apt.log" 2>&1 || true # what follows says whether it was enough
}

# install PACKAGE... installs Debian packages.
install() {
	command -v apt-get >/dev/null || skip "$* is missing, and there is no apt-get to install it"
	[ "$(id -u)" = 0 ] || skip "$* is missing, and only root can install it: apt-get install $*"
	apt_update
	DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -qy --no-install-recommends \
		-o DPkg::Lock::Timeout=60 "$@" >>"$tmp/apt.log" 2>&1 </dev/null ||
		skip "apt-get install $* did not work: $(tail -n 1 "$tmp/apt.log")"
}

missing=
command -v qemu-system-x86_64 >/dev/null || missing=qemu-system-x86
command -v cpio >/dev/null || missing="$missing cpio"
# shellcheck disable=SC2086 # words
[ -z "$missing" ] || install $missing

# kernel_package names the package that has the kernel: linux-image-cloud-amd64 only depends on it.
kernel_package() {
	apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ { print $2; exit }'
}

if [ ! -s "$kernel" ]; then
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		skip "$kernel is missing, and there is no apt-get to fetch it"
	fi
	package=$(kernel_package)
	if [ -z "$package" ]; then
		apt_update
		package=$(kernel_package)
	fi
	[ -n "$package" ] || skip 'apt knows no package linux-image-cloud-amd64'
	mkdir -p "$cache" "$tmp/deb"
	chmod 755 "$tmp" # apt's downloader gives up its rights
	download() { (cd "$tmp/deb" && timeout 300 apt-get download -q "$package") >>"$tmp/apt.log" 2>&1; }
	if ! download; then # the lists may be older than the archive
		apt_update
		package=$(kernel_package)
		download || skip "apt-get download $package did not work: $(tail -n 1 "$tmp/apt.log")"
	fi
	dpkg-deb -x "$tmp"/deb/*.deb "$tmp/kernel"
	new=$(mktemp "$kernel.XXXXXX")
	cp "$tmp"/kernel/boot/vmlinuz-* "$new"
	chmod 644 "$new"
	mv -f "$new" "$kernel"
	rm -rf "$tmp/deb" "$tmp/kernel"
fi

for program in supervisor qjs-worker; do
	[ -x "bin/$program" ] || {
		echo "e2e-vm.sh: error: bin/$program is missing: make build" >&2
		exit 1
	}
done
root=$tmp/root
mkdir -p "$root/bin"
# No symbols: the VM has to read every byte of it.
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$root/init" ./test/vm/init
for package in cgroup lockdown; do
	CGO_ENABLED=0 go test -c -trimpath -ldflags='-s -w' -o "$root/bin/$package.test" "./limits/$package"
done
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -tags nomemorylimit -o "$root/bin/hungry-worker" ./cmd/qjs-worker
cp bin/supervisor bin/qjs-worker "$root/bin/"
cp "$root/init" "$root/bin/true" # see there
(cd "$root" && find . | cpio --quiet -o -H newc) >"$tmp/initrd"

# The console is the only output. No terminal, no disk, no network. The verdict decides, not the exit code.
timeout --foreground -k 5 "${E2E_VM_TIMEOUT:-180}" qemu-system-x86_64 \
	-M pc -accel tcg,thread=multi -cpu max -smp 2 -m 1024 \
	-nodefaults -no-user-config -display none -no-reboot -serial stdio \
	-kernel "$kernel" -initrd "$tmp/initrd" \
	-append 'console=ttyS0 quiet loglevel=3 reboot=t panic=-1 random.trust_cpu=on '"${E2E_VM_VERBOSE:+e2e.verbose}" \
	</dev/null 2>&1 | tee "$tmp/console" | sed -un 's/\r$//; /^e2e-vm: /p; /^    /p'

verdict=$(tr -d '\r' <"$tmp/console" | grep '^e2e-vm: verdict: ' | tail -n 1 || true)
case $verdict in
'e2e-vm: verdict: 0 ok, '* | '') ;;
*' ok, 0 failed') exit 0 ;;
*) exit 1 ;;
esac
echo "e2e-vm.sh: error: the VM gave no verdict; the end of its console:" >&2
tail -n 40 "$tmp/console" >&2
exit 1
