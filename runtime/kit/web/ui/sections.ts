/** The sections of the pages, in the order of the side bar: the same on the server and on its cache. */
import type { NavLink } from './layout.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.frame.titles

export const IMAGES = '/ui/cache'

export const SECTIONS: readonly NavLink[] = [
  { href: '/ui/dashboard', title: t.dashboard, icon: 'dashboard' },
  { href: '/ui/machines', title: t.machines, icon: 'machines' },
  { href: '/ui/runs', title: t.runs, icon: 'runs' },
  { href: IMAGES, title: t.images, icon: 'image' },
  { href: '/ui/netboot', title: t.netboot, icon: 'netboot' },
  { href: '/ui/dhcp', title: t.dhcp, icon: 'dhcp' },
  { href: '/ui/first-boot', title: t.firstBoot, icon: 'firstBoot' },
  { href: '/ui/backups', title: t.backups, icon: 'backups' },
  { href: '/ui/events', title: t.events, icon: 'events' },
  { href: '/ui/settings', title: t.settings, icon: 'settings' },
]

/** The keys of `keys.js`, which opens the links of the navigation. */
export const SECTION_KEYS = [
  ['d', t.dashboard],
  ['m', t.machines],
  ['r', t.runs],
  ['i', t.images],
  ['n', t.netboot],
  ['h', t.dhcp],
  ['f', t.firstBoot],
  ['b', t.backups],
  ['e', t.events],
  ['s', t.settings],
] as const
