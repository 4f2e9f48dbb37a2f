/** `/boot/releases` and the forms of its page: fetch releases, and activate an earlier one. */
import { z } from 'zod'
import { getRouterParam } from 'h3'
import { BOOT_ARCHS } from '#fleet/boot/rules/boot-set.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { splitReleaseSource, ReleaseTagSchema } from '#fleet/boot/rules/release.ts'
import { isOver } from '#kit/host/jobs.ts'
import { saveBuiltSet } from '#fleet/boot/boot-sets.ts'
import type { Netboot } from '#server/current/assembly/netboot.ts'
import type { Requester } from '#fleet/state/journal.ts'
import { json } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from '#server/routes/site.ts'
import { documentObject, type Route } from '#kit/web/answers/route.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { goBack, goTo } from '#server/pages/form-answer.ts'
import { checked, renderSchema } from '#kit/web/answers/checked.ts'
import type { saveSettings } from '#server/current/assembly/configuration.ts'

/** Absent: the tag of the settings. */
const ReleaseRequestSchema = z.strictObject({ tag: ReleaseTagSchema.optional() })

interface ReleaseRouteDependencies {
  readonly netboot: Pick<Netboot, 'bootFiles' | 'listBuilt' | 'releases'>
  tag(): string
  /** By dotted name, all or none. */
  save(given: Readonly<Record<string, string>>): ReturnType<typeof saveSettings>
}

const PAGE = '/ui/netboot'
/** Where the files are fetched; their path on this host stays private. */
const ROOT = '/boot/'

export const releaseRoutes = (site: Site, parts: ReleaseRouteDependencies): readonly Route[] => [
  ...fetchRoutes(site, parts),
  ...formRoutes(site, parts),
]

function fetchRoutes(
  { by }: Site,
  { netboot: { releases }, tag }: ReleaseRouteDependencies,
): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/boot/releases',
      access: 'read',
      reach: 'shared',
      doc: documentObject('Fetches of releases of the live system by this server'),
      handle: () => json({ boot_root: ROOT, max_parallel: 1, fetches: releases.jobs() }),
    },
    {
      method: 'POST',
      path: '/boot/releases',
      access: 'admin',
      reach: 'shared',
      takes: 'json',
      doc: {
        summary: 'Starts to fetch a release',
        body: renderSchema(ReleaseRequestSchema, 'input'),
        answers: { 202: { type: 'object' } },
        refuses: [409],
      },
      async handle(event, body) {
        const asked = checked(ReleaseRequestSchema, body ?? {})
        return json(await releases.start(asked.tag ?? tag(), by(event)), 202)
      },
    },
    {
      method: 'PUT',
      path: '/boot/releases',
      access: 'admin',
      reach: 'shared',
      handle() {
        throw refuse(400, 'releases is a route of this server: a boot file needs another name')
      },
    },
    {
      method: 'DELETE',
      path: '/boot/releases',
      access: 'admin',
      reach: 'shared',
      doc: documentObject('Cancels every fetch that is queued or running'),
      async handle(event) {
        const active = releases.jobs().filter((job) => !isOver(job))
        return json({
          cancelled: await Promise.all(active.map((job) => releases.cancel(job.tag, by(event)))),
        })
      },
    },
    {
      method: 'DELETE',
      path: '/boot/releases/:tag',
      access: 'admin',
      reach: 'shared',
      doc: documentObject('Cancels a fetch that is queued or running', 422),
      async handle(event) {
        const given = getRouterParam(event, 'tag', { decode: true }) ?? ''
        checked(ReleaseRequestSchema, { tag: given })
        const job = await releases.cancel(given, by(event))
        if (job === null) throw refuse(404, `no active release fetch for tag '${given}'`)
        return json(job)
      },
    },
  ]
}

const FETCH_ERRORS = {
  site: 'Enter the address of the site, such as https://github.com.',
  repository: 'Enter the repository, such as owner/name.',
  noTag: 'That is not a tag. Enter a tag such as v1.2.3, or latest.',
} as const

function formRoutes(
  site: Site,
  { netboot, tag, save }: ReleaseRouteDependencies,
): readonly Route[] {
  const { releases } = netboot
  const { by, notices } = site
  const saveSource = createSourceSaver(site, save)
  /** Redirects to the page, which shows the result. */
  const route = (
    action: string,
    act: (form: URLSearchParams, who: Requester) => Promise<Notice['errors'] | void>,
  ): Route => ({
    method: 'POST',
    path: `${PAGE}/${action}`,
    access: { page: 'admin' },
    reach: 'shared',
    takes: 'form',
    async handle(event, form) {
      try {
        const errors = (await act(form, by(event))) ?? {}
        // The form may be out of sight below the message, which therefore names the fields, too.
        const error = Object.entries(errors)
          .map(([name, text]) => `${LABELS[name] ?? name}: ${text}`)
          .join(' ')
        if (error === '') return goTo(event, PAGE)
        return goBack({ notices }, event, PAGE, { error, errors, typed: typedIn(form) })
      } catch (thrown) {
        if (!(thrown instanceof Fault)) throw thrown
        const error = [thrown.message, thrown.hint].filter(Boolean).join('. ')
        return goBack({ notices }, event, PAGE, { error, typed: typedIn(form) })
      }
    },
  })
  return [
    route('fetch-release', async (form, who) => {
      const given = (form.get('tag') ?? '').trim()
      if (given !== '' && !ReleaseTagSchema.safeParse(given).success)
        return { tag: FETCH_ERRORS.noTag }
      const errors = await saveSource(form, who)
      if (Object.keys(errors).length > 0) return errors
      await releases.start(given || tag(), who)
      return {}
    }),
    route('cancel-fetch', async (form, who) => {
      await releases.cancel((form.get('tag') ?? '').trim(), who)
    }),
    route('take-built', async (form, who) => {
      const found = (await netboot.listBuilt()).find(
        ({ arch, version }) => arch === form.get('arch') && version === form.get('version'),
      )
      if (found === undefined) throw new Fault('not-found', 'there is no such live system any more')
      await saveBuiltSet(netboot.bootFiles.save, found)
      await releases.use({ arch: found.arch, version: found.version }, who)
    }),
    route('use-set', async (form, who) => {
      const arch = BOOT_ARCHS.find((one) => one === form.get('arch'))
      if (arch === undefined) throw new Fault('misuse', 'an architecture must be named')
      await releases.use({ arch, version: form.get('version') ?? '' }, who)
    }),
  ]
}

/** One button saves the fields and fetches. Returns why fields were refused, by name. */
function createSourceSaver({ recordAll }: Site, save: ReleaseRouteDependencies['save']) {
  return async (form: URLSearchParams, who: Requester): Promise<Notice['errors']> => {
    const source = splitReleaseSource(form.get('site') ?? '', form.get('repository') ?? '')
    const given = FIELDS.filter(([name]) => form.has(name))
    const missing = given.filter(([name]) => source[name] === '')
    if (missing.length > 0)
      return Object.fromEntries(missing.map(([name]) => [name, FETCH_ERRORS[name]]))
    const saved = await save(
      Object.fromEntries(given.map(([name, setting]) => [setting, source[name]])),
    )
    if (!saved.ok) {
      const [name] = FIELDS.find(([, setting]) => setting === saved.refusal.at) ?? ['site']
      return { [name]: saved.refusal.error }
    }
    if (Object.keys(saved.value).length > 0) {
      const summary = 'The release site was changed'
      const entry = {
        kind: 'settings.upstream.updated',
        subject_kind: 'settings',
        summary,
      } as const
      await recordAll([{ ...entry, details: saved.value }], { subject_id: null, ...who })
    }
    return {}
  }
}

/** Form field and setting. */
const FIELDS = [
  ['site', 'releases.base_url'],
  ['repository', 'boot.release_repo'],
] as const
const LABELS: Readonly<Record<string, string>> = {
  site: 'Release site',
  repository: 'Repository',
  tag: 'Release',
}

const typedIn = (form: URLSearchParams): Readonly<Record<string, string>> =>
  Object.fromEntries([...form].filter(([name]) => ['site', 'repository', 'tag'].includes(name)))
