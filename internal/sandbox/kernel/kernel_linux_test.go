package kernel

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestSameAsUnix: every number equals the one in package unix on this architecture.
func TestSameAsUnix(t *testing.T) {
	for name, pair := range map[string][2]int{
		"open_tree": {sysOpenTree, unix.SYS_OPEN_TREE}, "move_mount": {sysMoveMount, unix.SYS_MOVE_MOUNT}, "fsopen": {sysFsopen, unix.SYS_FSOPEN}, "fsconfig": {sysFsconfig, unix.SYS_FSCONFIG},
		"fsmount": {sysFsmount, unix.SYS_FSMOUNT}, "close_range": {sysCloseRange, unix.SYS_CLOSE_RANGE}, "openat2": {sysOpenat2, unix.SYS_OPENAT2}, "mount_setattr": {sysMountSetattr, unix.SYS_MOUNT_SETATTR},
		"landlock_create_ruleset": {sysCreateRuleset, unix.SYS_LANDLOCK_CREATE_RULESET}, "landlock_add_rule": {sysAddRule, unix.SYS_LANDLOCK_ADD_RULE}, "landlock_restrict_self": {sysRestrictSelf, unix.SYS_LANDLOCK_RESTRICT_SELF},
		"seccomp":  {sysSeccomp, unix.SYS_SECCOMP},
		"AT_FDCWD": {ATFdcwd, unix.AT_FDCWD}, "AT_EMPTY_PATH": {ATEmptyPath, unix.AT_EMPTY_PATH}, "AT_RECURSIVE": {ATRecursive, unix.AT_RECURSIVE}, "O_PATH": {OPath, unix.O_PATH},
		"CLOSE_RANGE_CLOEXEC":   {CloseRangeCloexec, unix.CLOSE_RANGE_CLOEXEC},
		"RESOLVE_NO_MAGICLINKS": {ResolveNoMagiclinks, unix.RESOLVE_NO_MAGICLINKS}, "RESOLVE_NO_SYMLINKS": {ResolveNoSymlinks, unix.RESOLVE_NO_SYMLINKS}, "RESOLVE_IN_ROOT": {ResolveInRoot, unix.RESOLVE_IN_ROOT},
		"OPEN_TREE_CLONE": {OpenTreeClone, unix.OPEN_TREE_CLONE}, "OPEN_TREE_CLOEXEC": {OpenTreeCloexec, unix.OPEN_TREE_CLOEXEC}, "FSOPEN_CLOEXEC": {FsopenCloexec, unix.FSOPEN_CLOEXEC}, "FSMOUNT_CLOEXEC": {FsmountCloexec, unix.FSMOUNT_CLOEXEC},
		"MOVE_MOUNT_F_EMPTY_PATH": {MoveMountFEmptyPath, unix.MOVE_MOUNT_F_EMPTY_PATH}, "MOVE_MOUNT_T_EMPTY_PATH": {MoveMountTEmptyPath, unix.MOVE_MOUNT_T_EMPTY_PATH},
		"MOUNT_ATTR_RDONLY": {MountAttrRdonly, unix.MOUNT_ATTR_RDONLY}, "MOUNT_ATTR_NOSUID": {MountAttrNosuid, unix.MOUNT_ATTR_NOSUID}, "MOUNT_ATTR_NODEV": {MountAttrNodev, unix.MOUNT_ATTR_NODEV}, "MOUNT_ATTR_NOEXEC": {MountAttrNoexec, unix.MOUNT_ATTR_NOEXEC},
		"PR_SET_CHILD_SUBREAPER": {PRSetChildSubreaper, unix.PR_SET_CHILD_SUBREAPER}, "PR_SET_NO_NEW_PRIVS": {PRSetNoNewPrivs, unix.PR_SET_NO_NEW_PRIVS}, "PR_GET_NO_NEW_PRIVS": {PRGetNoNewPrivs, unix.PR_GET_NO_NEW_PRIVS},
		"PR_CAP_AMBIENT": {PRCapAmbient, unix.PR_CAP_AMBIENT}, "PR_CAP_AMBIENT_CLEAR_ALL": {PRCapAmbientClearAll, unix.PR_CAP_AMBIENT_CLEAR_ALL},
		"RLIMIT_NPROC": {RlimitNproc, unix.RLIMIT_NPROC}, "RLIMIT_MEMLOCK": {RlimitMemlock, unix.RLIMIT_MEMLOCK}, "RLIMIT_MSGQUEUE": {RlimitMsgqueue, unix.RLIMIT_MSGQUEUE},
		"SECCOMP_SET_MODE_FILTER": {SeccompSetModeFilter, unix.SECCOMP_SET_MODE_FILTER}, "SECCOMP_FILTER_FLAG_TSYNC": {SeccompFilterFlagTsync, unix.SECCOMP_FILTER_FLAG_TSYNC},
		"CAPABILITY_VERSION_3": {CapabilityVersion3, unix.LINUX_CAPABILITY_VERSION_3},
		"LandExecute":          {LandExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE}, "LandWriteFile": {LandWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE}, "LandReadFile": {LandReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE}, "LandReadDir": {LandReadDir, unix.LANDLOCK_ACCESS_FS_READ_DIR},
		"LandRemoveDir": {LandRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR}, "LandRemoveFile": {LandRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE}, "LandMakeDir": {LandMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR}, "LandMakeReg": {LandMakeReg, unix.LANDLOCK_ACCESS_FS_MAKE_REG},
		"LandMakeSock": {LandMakeSock, unix.LANDLOCK_ACCESS_FS_MAKE_SOCK}, "LandMakeFIFO": {LandMakeFIFO, unix.LANDLOCK_ACCESS_FS_MAKE_FIFO}, "LandMakeSym": {LandMakeSym, unix.LANDLOCK_ACCESS_FS_MAKE_SYM}, "LandRefer": {LandRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		"LandTruncate": {LandTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, "LandIoctlDev": {LandIoctlDev, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, "LandUnix": {LandUnix, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		"LandBindTCP": {LandBindTCP, unix.LANDLOCK_ACCESS_NET_BIND_TCP}, "LandConnectTCP": {LandConnectTCP, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		"LandAbstract": {LandAbstract, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}, "LandSignal": {LandSignal, unix.LANDLOCK_SCOPE_SIGNAL},
		"OpenHow":   {int(unsafe.Sizeof(OpenHow{})), int(unsafe.Sizeof(unix.OpenHow{}))},
		"MountAttr": {int(unsafe.Sizeof(MountAttr{})), int(unsafe.Sizeof(unix.MountAttr{}))},
		"CapHeader": {int(unsafe.Sizeof(CapHeader{})), int(unsafe.Sizeof(unix.CapUserHeader{}))},
		"CapData":   {int(unsafe.Sizeof(CapData{})), int(unsafe.Sizeof(unix.CapUserData{}))},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x, not %#x", name, pair[1], pair[0])
		}
	}
}
