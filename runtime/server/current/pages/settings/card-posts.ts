/** Saves the settings that the database keeps: from the form of the settings page, and as the deployed server's two forms posted them. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { compareFields } from '#fleet/state/rules/event-changes.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { formAt } from '#server/pages/context-routes.ts'
import type { Refused } from '#server/pages/form-answer.ts'
import {
  checkFields,
  describeError,
  type CardStore,
  recordSettingsEvent,
  readShown,
} from '#server/pages/settings/file-posts.ts'
import {
  savedAddress,
  SEARCH_FIELD,
  searchOf,
  SETTINGS_PATH,
} from '#server/pages/settings/after-post.ts'
import { checkSettings, saveSettings } from '#server/current/assembly/saved-settings.ts'
import type { CurrentContext } from '../view/page-context.ts'

/** As on the deployed server, with the settings that they set. */
const UPSTREAM = {
  netboot_repo: 'boot.release_repo',
  netboot_tag: 'boot.release_tag',
  catalog_url: 'withcache.url',
} as const

export const CARD_POSTS = [
  formAt(`${SETTINGS_PATH}/upstream`, saveUpstream),
  formAt(`${SETTINGS_PATH}/backup`, saveBackup),
]

export const createCardStore = (context: CurrentContext): CardStore => ({
  check: (given) =>
    new Map(checkSettings(context.services.config, given).map(({ at, error }) => [at, error])),
  async save(given) {
    const of = (isMeant: (name: string) => boolean) =>
      Object.fromEntries(Object.entries(given).filter(([name]) => isMeant(name)))
    const backup = of(isOfBackup)
    // Who chooses an interval wants backups.
    const isChosen = 'backup.cadence' in given && given['backup.cadence'] !== 'manual'
    const enabled = isChosen && !('backup.enabled' in given) ? { 'backup.enabled': 'true' } : {}
    await saveAll(context, 'backup', { ...backup, ...enabled })
    await saveAll(
      context,
      'upstream',
      of((name) => !isOfBackup(name)),
    )
  },
})

const isOfBackup = (name: string): boolean => name.startsWith('backup.')

interface Refusal {
  readonly at: string
  readonly value: string
  readonly error: string
}

async function saveUpstream(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  checkFields(form, Object.keys(UPSTREAM))
  const given = Object.entries(UPSTREAM).flatMap(([field, name]) => {
    const text = form.get(field)
    return text === null ? [] : [[name, text]]
  })
  const refusal = await saveAll(context, 'upstream', Object.fromEntries(given))
  const anchor = form.has('catalog_url') ? 'ramboot' : 'netboot-release'
  if (refusal !== null) {
    const at = form.has(SEARCH_FIELD) ? anchor : refusal.at
    return context.goBack(SETTINGS_PATH, asRefused(form, refusal, at))
  }
  const names = given.flatMap(([name]) => name ?? [])
  const post = { saved: 'upstream', names, anchor, plainAnchor: null } as const
  return context.goTo(savedAddress(form, post))
}

/** An invalid schedule: a 422 for programs, the form again for people. */
async function saveBackup(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  checkFields(form, ['backup_enabled', 'backup_cadence', 'backup_retention_count'])
  const refusal = await saveAll(context, 'backup', {
    'backup.enabled': form.has('backup_enabled') ? 'true' : 'false',
    'backup.cadence': form.get('backup_cadence') ?? 'manual',
    'backup.retention': form.get('backup_retention_count') ?? '',
  })
  if (refusal === null) {
    const names = ['backup.cadence']
    return context.goTo(savedAddress(form, { saved: 'backup', names, anchor: 'backup-schedule' }))
  }
  const isPerson = context.event.req.headers.get('accept')?.includes('text/html') === true
  if (!isPerson) throw refuse(422, `${refusal.at} ${refusal.error}`)
  return context.goBack(SETTINGS_PATH, asRefused(form, refusal, 'backup-schedule'))
}

const asRefused = (
  form: URLSearchParams,
  { at, value, error }: Refusal,
  anchor: string,
): Refused => ({
  error,
  typed: { [at]: value },
  errors: { [at]: describeError(error) },
  anchor,
  query: searchOf(form),
})

const SUMMARIES = {
  upstream: 'Upstream settings changed',
  backup: 'Backup settings changed',
} as const

/** All or none; a file's value that nobody changed stays the file's. */
async function saveAll(
  context: CurrentContext,
  what: 'upstream' | 'backup',
  given: Readonly<Record<string, string>>,
): Promise<Refusal | null> {
  const before = readShown(context, Object.keys(given))
  const saved = await saveSettings(context.services, given)
  if (!saved.ok) return { ...saved.refusal, value: given[saved.refusal.at] ?? '' }
  const names = Object.keys(saved.value)
  if (names.length === 0) return null
  await recordSettingsEvent(context, `settings.${what}.updated`, SUMMARIES[what], {
    ...saved.value,
    changes: compareFields(before, readShown(context, names)),
  })
  return null
}
