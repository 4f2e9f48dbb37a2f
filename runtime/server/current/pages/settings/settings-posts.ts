/** Handles the posts of the settings page: saves settings in the database, or lines of configuration files. */
import type { HTTPResponse } from 'h3'
import { compareFields } from '../../../../fleet/state/rules/event-changes.ts'
import { Fault } from '../../../../kit/foundation/fault.ts'
import { refuse } from '../../../../kit/web/answers/faults.ts'
import { renderEditRefusal } from '../../../../kit/config/config-editor.ts'
import { SETTING_TITLES } from './setting-titles.ts'
import { saveSettings } from '../../assembly/saved-settings.ts'
import { formAt } from '../frame/context-routes.ts'
import type { Refused } from '../frame/form-answer.ts'
import type { PageContext } from '../frame/page-context.ts'
import { nameOf } from './settings-rows.ts'

const PATH = '/ui/settings'

/** Form fields, named as on the deployed server, and the settings that they set. */
const UPSTREAM = {
  netboot_repo: 'boot.release_repo',
  netboot_tag: 'boot.release_tag',
  catalog_url: 'withcache.url',
} as const

/** The fields of the form of one setting. */
const EDITED = ['section', 'key', 'value'] as const

export const SETTINGS_POSTS = [
  formAt(`${PATH}/upstream`, saveUpstream),
  formAt(`${PATH}/backup`, saveBackup),
  formAt(`${PATH}/config/edit`, editConfig),
]

interface Refusal {
  readonly at: string
  readonly value: string
  readonly error: string
}

/** A misspelt field would be ignored silently, so it is refused. */
function checkFields(form: URLSearchParams, known: readonly string[]): void {
  const stray = [...form.keys()].find((field) => !known.includes(field))
  if (stray !== undefined) throw refuse(422, `the form has no field ${stray.slice(0, 40)}`)
  if (form.size === 0) throw refuse(422, 'the form holds nothing to save')
}

async function saveUpstream(context: PageContext, form: URLSearchParams): Promise<HTTPResponse> {
  checkFields(form, Object.keys(UPSTREAM))
  const given = Object.entries(UPSTREAM).flatMap(([field, name]) => {
    const text = form.get(field)
    return text === null ? [] : [[name, text]]
  })
  const refusal = await saveAll(context, 'upstream', Object.fromEntries(given))
  return refusal === null
    ? context.goTo(`${PATH}?saved=upstream`)
    : context.goBack(PATH, asRefused(refusal, refusal.at))
}

/** An invalid schedule is a 422 for programs, and the form again for people. */
async function saveBackup(context: PageContext, form: URLSearchParams): Promise<HTTPResponse> {
  checkFields(form, ['backup_enabled', 'backup_cadence', 'backup_retention_count'])
  const refusal = await saveAll(context, 'backup', {
    'backup.enabled': form.has('backup_enabled') ? 'true' : 'false',
    'backup.cadence': form.get('backup_cadence') ?? 'manual',
    'backup.retention': form.get('backup_retention_count') ?? '',
  })
  if (refusal === null) return context.goTo(`${PATH}?saved=backup#backup-schedule`)
  const isPerson = context.event.req.headers.get('accept')?.includes('text/html') === true
  if (!isPerson) throw refuse(422, `${refusal.at} ${refusal.error}`)
  return context.goBack(PATH, asRefused(refusal, 'backup-schedule'))
}

/** The page shows what was typed in its field again. */
const asRefused = ({ at, value, error }: Refusal, anchor: string): Refused => ({
  error,
  typed: { at, value },
  anchor,
})

const SUMMARIES = {
  upstream: 'Upstream settings changed',
  backup: 'Backup settings changed',
} as const

/** As the page shows them, for the record; of secrets it only shows whether they are set. */
const readShown = ({ services }: PageContext, names: readonly string[]) =>
  Object.fromEntries(
    services.config
      .list()
      .filter((row) => names.includes(nameOf(row)))
      .map((row) => [nameOf(row), row.shown || null]),
  )

/** Saves all of them or none; what a file says and nobody changed stays the file's. */
async function saveAll(
  context: PageContext,
  what: 'upstream' | 'backup',
  given: Readonly<Record<string, string>>,
): Promise<Refusal | null> {
  const before = readShown(context, Object.keys(given))
  const saved = await saveSettings(context.services, given)
  if (!saved.ok) return { ...saved.refusal, value: given[saved.refusal.at] ?? '' }
  const names = Object.keys(saved.value)
  if (names.length === 0) return null
  await note(context, `settings.${what}.updated`, SUMMARIES[what], {
    ...saved.value,
    changes: compareFields(before, readShown(context, names)),
  })
  return null
}

async function editConfig(context: PageContext, form: URLSearchParams): Promise<HTTPResponse> {
  checkFields(form, EDITED)
  const [section, key, text] = [form.get('section'), form.get('key'), form.get('value')]
  if (section === null || key === null || text === null) {
    throw refuse(422, `one of the fields ${EDITED.join(', ')} is missing`)
  }
  const at = `${section}.${key}`
  const fail = async (error: string, value: string) => {
    await note(context, 'settings.config.failed', `${at} was not changed: ${error}`, {
      section,
      key,
    })
    return context.goBack(PATH, asRefused({ at, value, error }, at))
  }
  try {
    const before = readShown(context, [at])
    const edited = await context.services.config.edit({ section, key, text })
    if (!edited.ok) {
      // Browsers keep pages, so a secret is not repeated in one.
      const value = edited.refusal.why === 'secret' ? '' : text
      return await fail(renderEditRefusal(edited.refusal), value)
    }
    const { path, line, pending } = edited.value
    const title = SETTING_TITLES.get(at) ?? at
    const summary = `${title} (${at}) was changed in ${path}`
    await note(context, 'settings.config.updated', summary, {
      section,
      key,
      path,
      line,
      changes: compareFields(before, readShown(context, [at])),
    })
    context.site.feed.announce({ topic: 'settings' })
    return context.goTo(`${PATH}?saved=${pending.includes(at) ? 'restart' : 'config'}#${at}`)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return await fail(error.message, text)
  }
}

async function note(
  context: PageContext,
  kind: string,
  summary: string,
  details: Readonly<Record<string, unknown>>,
) {
  await context.site.noteAll([{ kind, subject_kind: 'settings', summary, details }], {
    subject_id: null,
    ...context.by(),
  })
}
