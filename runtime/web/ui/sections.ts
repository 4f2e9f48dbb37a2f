/** The sections of the pages, in the order of the side bar: the same on the server and on its cache. */
import type { NavLink } from './frame.ts'

/** Leads to the pages of the cache service, which has the images. */
export const IMAGES = '/ui/cache'

export const SECTIONS: readonly NavLink[] = [
  { href: '/ui/dashboard', title: 'Dashboard', icon: 'dashboard' },
  { href: '/ui/machines', title: 'Machines', icon: 'machines' },
  { href: '/ui/runs', title: 'Runs', icon: 'runs' },
  { href: IMAGES, title: 'Images', icon: 'image' },
  { href: '/ui/netboot', title: 'Netboot', icon: 'netboot' },
  { href: '/ui/backups', title: 'Backups', icon: 'backups' },
  { href: '/ui/events', title: 'Events', icon: 'events' },
  { href: '/ui/settings', title: 'Settings', icon: 'settings' },
]
