/** All products: what `pnpm build:images` builds by itself, and what it builds when it is named. */
import type { Appliance } from './appliance.ts'
import { containers } from './containers.ts'
import { debianPackage } from './debian-package.ts'
import { earlierLive, earlierUsb } from './earlier.ts'
import { ipxeEfi } from './ipxe-efi.ts'
import { netbootArm64 } from './netboot-arm64.ts'
import { netbootPc } from './netboot-pc.ts'
import { secureBootEfi } from './secureboot-efi.ts'
import { serverAppliance, serverRpi } from './server.ts'
import { usbPc } from './usb-pc.ts'
import { usbRpi } from './usb-rpi.ts'

export const APPLIANCES: readonly Appliance[] = [netbootPc, ipxeEfi, secureBootEfi, usbPc]

/** `pnpm build:images server deb containers`; a release has them, too. */
export const NAMED_APPLIANCES: readonly Appliance[] = [
  serverAppliance,
  debianPackage,
  containers,
  earlierLive,
  earlierUsb,
  netbootArm64,
  usbRpi,
  serverRpi,
]
