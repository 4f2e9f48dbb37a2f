/** All products that `pnpm build:images` builds. */
import type { Appliance } from './appliance.ts'
import { ipxeEfi } from './ipxe-efi.ts'
import { netbootPc } from './netboot-pc.ts'
import { secureBootEfi } from './secureboot-efi.ts'
import { usbPc } from './usb-pc.ts'

export const APPLIANCES: readonly Appliance[] = [netbootPc, ipxeEfi, secureBootEfi, usbPc]
