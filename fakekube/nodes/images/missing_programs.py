"""Programs that a known image lacks: which names a base system has, and the errors of the container runtime about others.

A name that a base system has may be in an image although the shell here does not have it.

Specified by: the applets of busybox' default configuration; the required packages, apt and OpenSSL of Debian 12, and what the
Dockerfiles of the known images install; runc 1.3 (libcontainer: process_linux.go, standard_init_linux.go), containerd 2
(internal/cri/server/container_start.go).
"""

from __future__ import annotations

import posixpath
from typing import Final

from fakekube.base.golang.strconv import go_quote

_NAMES: Final = """
[ [[ ab acpid add-shell addgroup addpart adduser adjtimex agetty apachectl apk apt apt-cache apt-cdrom apt-config apt-get
apt-key apt-mark arch arp arping ascii ash awk b2sum badblocks base32 base64 basename basenc bash bashbug bc beep blkdiscard
blkid blkzone blockdev bootchartd brctl bridge bunzip2 busybox bzcat bzip2 c_rehash cal captoinfo cat chage chat chattr
chcon chcpu chfn chgpasswd chgrp chmem chmod choom chown chpasswd chpst chroot chrt chsh chvt cksum clear clear_console cmp
comm conspy cp cpgr cpio cppw crc32 crond crontab cryptpw csplit ctrlaltdel cttyhack curl cut dash date dc dd deallocvt
deb-systemd-helper deb-systemd-invoke debconf debconf-apt-progress debconf-communicate debconf-copydb debconf-escape
debconf-set-selections debconf-show debugfs delgroup delpart deluser delv depmod devmem df dhcprelay diff diff3 dig dir
dircolors dirname dmesg dnsd dnsdomainname domainname dos2unix dpkg dpkg-deb dpkg-divert dpkg-fsys-usrunmess
dpkg-maintscript-helper dpkg-preconfigure dpkg-query dpkg-realpath dpkg-reconfigure dpkg-split dpkg-statoverride
dpkg-trigger du dumpe2fs dumpkmap dumpleases e2freefrag e2fsck e2image e2label e2mmpstatus e2scrub e2scrub_all e2undo
e4crypt e4defrag echo ed egrep eject env envdir envsubst envuidgid ether-wake expand expiry expr factor faillock faillog
fakeidentd fallocate false fatattr fbset fbsplash fdflush fdformat fdisk fgconsole fgrep filefrag find findfs findmnt flock
fmt fold free freeramdisk fsck fsck.cramfs fsck.ext2 fsck.ext3 fsck.ext4 fsck.minix fsfreeze fstab-decode fstrim fsync ftpd
ftpget ftpput fuser getconf getent getfattr getopt getty gpasswd grep groupadd groupdel groupmems groupmod groups grpck
grpconv grpunconv gunzip gzexe gzip halt hardlink hd hdparm head hexdump hexedit host hostid hostname htpasswd httpd hush
hwclock i2cdetect i2cdump i2cget i2cset i2ctransfer i386 iconv iconvconfig id ifconfig ifdown ifenslave ifplugd ifup inetd
infocmp infotocap init insmod install installkernel invoke-rc.d ionice iostat ip ipaddr ipcalc ipcmk ipcrm ipcs iperf iplink
ipneigh iproute iprule iptunnel ischroot isosize join jq kbd_mode kill killall killall5 klogd last lastb lastlog ld.so
ldattach ldconfig ldd less link linux32 linux64 linuxrc ln loadfont loadkmap locale localedef logger login logname logread
losetup lpd lpq lpr ls lsattr lsblk lscpu lsipc lslocks lslogins lsmem lsmod lsns lsof lspci lsscsi lsusb lzcat lzma lzop
makedevs makemime man mawk mcookie md5sum md5sum.textutils mdev mesg microcom mim mkdir mkdosfs mke2fs mkfifo mkfs mkfs.bfs
mkfs.cramfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.minix mkfs.vfat mkhomedir_helper mklost+found mknod mkpasswd mkswap mktemp
modinfo modprobe more mount mountpoint mpstat mt mv namei nameif nanddump nandwrite nbd-client nc netstat newgrp newusers
nginx-debug nice nisdomainname nl nmeter nohup nologin nproc nsenter nslookup ntpd numfmt od openssl openvt pam-auth-update
pam_getenv pam_namespace_helper pam_timestamp_check partprobe partx passwd paste patch pathchk perl perl5.36.0 pgrep pidof
ping ping6 pinky pipe_progress pivot_root pkill pldd pmap popmaildir poweroff powertop pr printenv printf prlimit ps pscan
pstree ptx pwck pwconv pwd pwdx pwhistory_helper pwunconv raidautorun rbash rdate rdev readahead readlink readprofile
realpath reboot reformime remove-shell rename.ul renice reset resize resize2fs resizepart resume rev rgrep rm rmdir rmmod
rmt-tar route rpm rpm2cpio rtcwake run-init run-parts runcon runlevel runsv runsvdir runuser rx savelog scanelf script
scriptlive scriptreplay sdiff sed seedrng select-editor sendmail sensible-browser sensible-editor sensible-pager seq service
setarch setconsole setfattr setfont setkeycodes setlogcons setpriv setserial setsid setterm setuidgid sg sh sha1sum
sha224sum sha256sum sha384sum sha3sum sha512sum shadowconfig showkey shred shuf slattach sleep smemcap softlimit sort split
ss ssl_client start-stop-daemon stat stdbuf strings stty su sulogin sum sv svc svlogd svok swaplabel swapoff swapon
switch_root sync sysctl syslogd tabs tac tail tar tarcat taskset tc tcpsvd tee telnet telnetd tempfile test tftp tftpd tic
time timeout toe top touch tput tr traceroute traceroute6 tree true truncate ts tset tsort tty ttysize tunctl tune2fs
tzselect ubiattach ubidetach ubimkvol ubirename ubirmvol ubirsvol ubiupdatevol uclampset udhcpc udhcpc6 udhcpd udpsvd uevent
umount uname uncompress unexpand uniq unit unix2dos unix_chkpwd unix_update unlink unlzma unshare unxz unzip
update-alternatives update-ca-certificates update-passwd update-rc.d update-shells uptime useradd userdel usermod users
usleep utmpdump uudecode uuencode vconfig vdir vi vigr vipw vlock volname w wall watch watchdog wc wdctl wget whereis which
which.debianutils who whoami whois wipefs x86_64 xargs xxd xz xzcat yes ypdomainname zcat zcip zcmp zdiff zdump zegrep
zfgrep zforce zgrep zic zless zmore znew zramctl
"""
_BASE_COMMANDS: Final = frozenset(_NAMES.split())


def is_base_command(name: str) -> bool:
    """Reports whether a base system may have a command with this name or path."""
    directory, base = posixpath.split(name)
    return base in _BASE_COMMANDS and (not directory or posixpath.basename(directory) in ("bin", "sbin"))


def start_error(name: str) -> str:
    """Returns the error about a container whose main program, a name or a path, does not exist."""
    failed = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed"
    return f"{failed}: unable to start container process: error during container init: {exec_error(name)}: unknown"


def exec_error(name: str) -> str:
    """Returns the error about a name or a path of which there is no program."""
    if "/" in name:
        return f"exec: {go_quote(name)}: stat {name}: no such file or directory"
    return f"exec: {go_quote(name)}: executable file not found in $PATH"
