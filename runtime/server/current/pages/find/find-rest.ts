/** What the search of everything finds beside machines: images, people, settings, pages and actions. */
import { SECTIONS, IMAGES } from '#kit/web/ui/sections.ts'
import { KEYS_PATH } from '#kit/web/ui/keys-choice.ts'
import { fill } from '#kit/texts/text.ts'
import { address } from '#kit/web/ui/html.ts'
import { translateRows } from '#server/pages/settings/setting-texts.ts'
import { PAGES } from '#server/texts/texts.ts'
import { keywordsOf } from '../machines/image-cards.ts'
import { MACHINE_FILE_PATH } from '../machine-file/file-path.ts'
import { CHANNELS_PATH } from '../images/channels-path.ts'
import { BATCHES_PATH } from '../view/batch-view.ts'
import { aboutImage } from '../view/next-boot.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { hasWords, type FoundLink } from './found.ts'

const t = PAGES.find

const MAX_ROWS = 6

interface PageLink {
  readonly href: string
  readonly title: string
  /** The row of the page gate that permits it; absent: the page's own. */
  readonly takes?: readonly ['GET' | 'POST', string]
}

/** For pages that no section names. */
const PAGE_LINKS: readonly PageLink[] = [
  ...SECTIONS,
  { href: '/ui/machines?view=wall', title: t.pages.wall, takes: ['GET', '/ui/machines'] },
  { href: '/ui/machines/labels', title: PAGES.machines.labels.link },
  { href: MACHINE_FILE_PATH, title: PAGES.machineFile.title },
  { href: BATCHES_PATH, title: t.pages.batches },
  { href: CHANNELS_PATH, title: PAGES.channels.title },
  { href: '/ui/people', title: t.pages.people },
  { href: '/ui/notifications', title: PAGES.notifications.title },
  { href: '/ui/account', title: t.pages.account },
  { href: KEYS_PATH, title: t.pages.keys },
  { href: '/docs/api', title: t.pages.api, takes: ['GET', '/ui/account'] },
]

const ACTIONS: readonly PageLink[] = [
  { href: '/ui/machines#add', title: t.actions.addMachine, takes: ['POST', '/ui/machines'] },
  { href: IMAGES, title: t.actions.image, takes: ['POST', IMAGES] },
  { href: '/ui/netboot', title: t.actions.release, takes: ['POST', '/ui/netboot/fetch-release'] },
  { href: '/ui/backups', title: t.actions.backup, takes: ['POST', '/ui/backups'] },
  { href: '/ui/first-boot?new=1', title: t.actions.template, takes: ['POST', '/ui/first-boot'] },
  { href: '/ui/account#tokens', title: t.actions.token, takes: ['POST', '/ui/account/tokens'] },
  { href: '/ui/people/add', title: t.actions.addPerson, takes: ['POST', '/ui/people'] },
  {
    href: '/ui/settings#ramboot',
    title: t.actions.cache,
    takes: ['POST', '/ui/settings/upstream'],
  },
  { href: '/ui/account', title: t.actions.password, takes: ['POST', '/ui/account/password'] },
]

/** Only pages that are open to the requester. */
export const findPages = (
  context: CurrentContext,
  words: readonly string[],
): readonly FoundLink[] => select(context, PAGE_LINKS, words)

/** Only what the role permits. */
export const findActions = (
  context: CurrentContext,
  words: readonly string[],
): readonly FoundLink[] => select(context, ACTIONS, words)

const select = (
  { site, event }: CurrentContext,
  links: readonly PageLink[],
  words: readonly string[],
): readonly FoundLink[] =>
  links
    .filter(({ title, href, takes: [method, path] = ['GET', href] }) => {
      return hasWords(title, words) && site.mayOpen(event, path, method)
    })
    .map(({ href, title }) => ({ href, title }))

export const findImages = (
  { services }: CurrentContext,
  words: readonly string[],
): readonly FoundLink[] =>
  words.length === 0
    ? []
    : services
        .images()
        .filter((image) => hasWords(keywordsOf(image), words))
        .slice(0, MAX_ROWS)
        .map((image) => ({
          href: address('/ui/machines', { q: `image:"${image.name}"` }),
          title: image.name,
          about: aboutImage(image),
        }))

/** For those who may see their page; each leads to what they did. */
export function findPeople(
  context: CurrentContext,
  words: readonly string[],
): readonly FoundLink[] {
  const { site, event } = context
  if (words.length === 0 || !site.mayOpen(event, '/ui/people')) return []
  const people = site.people?.store.list() ?? []
  return people
    .filter(({ name }) => hasWords(name, words))
    .slice(0, MAX_ROWS)
    .map(({ name, role }) => ({
      href: address('/ui/events', { person: name }),
      title: fill(t.person, { name }),
      about: role === null ? PAGES.account.session.noRole : PAGES.account.roles[role].title,
    }))
}

/** For those who may see their page; by title, name and explanation. */
export function findSettings(
  context: CurrentContext,
  words: readonly string[],
): readonly FoundLink[] {
  const { site, event, services } = context
  if (words.length === 0 || !site.mayOpen(event, '/ui/settings')) return []
  const rows = translateRows(services.config.list(), services.settingTexts)
  const named = rows.filter(({ name, setting }) => hasWords(`${setting.title} ${name}`, words))
  const explained = rows.filter(({ setting }) =>
    hasWords(`${setting.title} ${setting.help}`, words),
  )
  return [...new Set([...named, ...explained])].slice(0, MAX_ROWS).map(({ name, setting }) => ({
    href: `/ui/settings#${name}`,
    title: setting.title,
    about: name,
  }))
}
