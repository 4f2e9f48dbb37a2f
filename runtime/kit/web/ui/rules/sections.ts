/** The sections of the pages, each with its tabs: the same on the server and on its cache. */
import { z } from 'zod'

export const IMAGES = '/ui/cache'

/** A page in the navigation; the pages below its path belong to it. */
export interface Tab {
  readonly href: string
  readonly title: string
  /** Further words by which the search finds it. */
  readonly also?: string
}

type SectionIcon =
  | 'dashboard'
  | 'machines'
  | 'batches'
  | 'runs'
  | 'image'
  | 'netboot'
  | 'events'
  | 'settings'
  | 'account'

export interface Section extends Tab {
  readonly icon: SectionIcon
  /** On the keyboard, behind `g`. */
  readonly key: string
  /** The page behind the name of the product. */
  readonly isHome?: boolean
  readonly tabs?: readonly Tab[]
}

export const SECTIONS: readonly Section[] = [
  { href: '/ui/dashboard', title: 'Dashboard', icon: 'dashboard', key: 'd', isHome: true },
  { href: '/ui/machines', title: 'Machines', icon: 'machines', key: 'm' },
  { href: '/ui/batches', title: 'Batches', icon: 'batches', key: 'b' },
  { href: '/ui/runs', title: 'Runs', icon: 'runs', key: 'r' },
  {
    href: IMAGES,
    title: 'Images',
    icon: 'image',
    key: 'i',
    tabs: [
      { href: IMAGES, title: 'Images' },
      { href: '/ui/first-boot', title: 'Templates', also: 'first boot' },
      { href: '/ui/channels', title: 'Channels' },
    ],
  },
  {
    href: '/ui/netboot',
    title: 'Network boot',
    icon: 'netboot',
    key: 'n',
    also: 'netboot live system',
    tabs: [
      { href: '/ui/netboot', title: 'Live system' },
      { href: '/ui/boot-entries', title: 'Boot entries', also: 'boot once memtest installer' },
      { href: '/ui/dhcp', title: 'DHCP' },
      { href: '/ui/netboot/tftp', title: 'TFTP check' },
    ],
  },
  { href: '/ui/events', title: 'Events', icon: 'events', key: 'e' },
  {
    href: '/ui/settings',
    title: 'Settings',
    icon: 'settings',
    key: 's',
    tabs: [
      { href: '/ui/settings', title: 'General' },
      { href: '/ui/people', title: 'People' },
      { href: '/ui/notifications', title: 'Notifications' },
      { href: '/ui/backups', title: 'Backups' },
      { href: '/ui/account', title: 'Account', also: 'api tokens' },
    ],
  },
]

/** What somebody may open. A section whose own page they may not open leads to its first tab. */
export const listOpenSections = (
  sections: readonly Section[],
  mayOpen: (path: string) => boolean,
): readonly Section[] =>
  sections.flatMap((section) => {
    const tabs = (section.tabs ?? [section]).filter(({ href }) => mayOpen(href))
    return tabs[0] === undefined ? [] : [{ ...section, href: tabs[0].href, tabs }]
  })

/** The section or tab that an address belongs to: the longest path in front of it. */
export function findTab(sections: readonly Section[], address: string): Tab | null {
  const path = address
    // The API has its addresses without `/ui`; a run is a page of its machine.
    .replace(/^\/(?!ui\/)/, '/ui/')
    .replace(/^\/ui\/machines\/[^/]+\/runs\//, '/ui/runs/')
  const [found] = sections
    .flatMap((section) => [...(section.tabs ?? []), section])
    .filter(({ href }) => path === href || path.startsWith(`${href}/`))
    .toSorted((one, other) => other.href.length - one.href.length)
  return found ?? null
}

export const holds = ({ href, tabs = [] }: Pick<Section, 'href' | 'tabs'>, tab: string): boolean =>
  href === tab || tabs.some((each) => each.href === tab)

/** Where a server tells its cache, whose pages have its side bar, what that shows to somebody. */
export const FRAME_PATH = `${IMAGES}/frame`

const count = z.int().min(0)

export const FrameSchema = z.object({
  /** The paths that they may open. */
  open: z.array(z.string()),
  alarms: count,
  batches: count,
})

export type ServerFrame = Readonly<z.infer<typeof FrameSchema>>
