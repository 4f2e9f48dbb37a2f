/** The texts of the pages in English, by area: the frame, each page, and what several of them show. */
import { ACCOUNT } from './english/account.ts'
import { BACKUPS } from './english/backups.ts'
import { BATCHES } from './english/batches.ts'
import { CHANNELS } from './english/channels.ts'
import { DASHBOARD } from './english/dashboard.ts'
import { EARLIER } from './english/earlier.ts'
import { EVENTS } from './english/events.ts'
import { FIND } from './english/find.ts'
import { FIRST_BOOT } from './english/first-boot.ts'
import { FRAME } from './english/frame.ts'
import { IMAGES } from './english/images.ts'
import { MACHINE } from './english/machine.ts'
import { MACHINE_FILE } from './english/machine-file.ts'
import { MACHINES } from './english/machines.ts'
import { NETBOOT } from './english/netboot.ts'
import { NOTIFICATIONS } from './english/notifications.ts'
import { PEOPLE } from './english/people.ts'
import { POWER } from './english/power.ts'
import { PROVIDER } from './english/provider.ts'
import { RUNS } from './english/runs.ts'
import { SETTINGS } from './english/settings.ts'
import { VIEW } from './english/view.ts'

export const ENGLISH = {
  frame: FRAME,
  find: FIND,
  firstBoot: FIRST_BOOT,
  dashboard: DASHBOARD,
  netboot: NETBOOT,
  images: IMAGES,
  backups: BACKUPS,
  batches: BATCHES,
  channels: CHANNELS,
  earlier: EARLIER,
  machines: MACHINES,
  machine: MACHINE,
  machineFile: MACHINE_FILE,
  power: POWER,
  runs: RUNS,
  view: VIEW,
  settings: SETTINGS,
  account: ACCOUNT,
  people: PEOPLE,
  provider: PROVIDER,
  notifications: NOTIFICATIONS,
  events: EVENTS,
} as const
