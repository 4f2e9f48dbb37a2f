/** UEFI firmware of a PC that enforces Secure Boot with Microsoft's keys, for QEMU. */

const FILES = [
  'readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.ms.fd',
  'snapshot=on,file=/usr/share/OVMF/OVMF_VARS_4M.ms.fd',
]

/** With SMM: without it, anybody could write to the keys. */
export const SECURE_FIRMWARE: readonly string[] = [
  '-machine',
  'smm=on',
  '-global',
  'driver=cfi.pflash01,property=secure,value=on',
  ...FILES.flatMap((file, unit) => ['-drive', `if=pflash,format=raw,unit=${unit},${file}`]),
]

/** What a kernel says that was started with Secure Boot enforced: any of it, for a busy host loses lines. */
export const LOCKED_DOWN =
  /Kernel is locked down from EFI Secure Boot|secureboot: Secure boot enabled|Lockdown: swapper\/0: hibernation/
