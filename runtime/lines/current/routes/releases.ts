/** `/boot/releases` and the forms of the Netboot page: fetching releases, and going back to one. */
import { getRouterParam, type H3Event } from 'h3'
import { BOOT_ARCHS } from '../../../core/boot/boot-set.ts'
import { Fault } from '../../../core/foundation/fault.ts'
import { ReleaseTagSchema } from '../../../core/boot/release.ts'
import { isOver } from '../../../services/boot/release-job.ts'
import type { Releases } from '../../../services/boot/releases.ts'
import { json } from '../../../web/http/answers.ts'
import { refuse } from '../../../web/http/faults.ts'
import type { Site } from '../../../web/fleet/site.ts'
import type { Route } from '../../../web/http/route.ts'
import { goBack, goTo } from '../pages/frame/form-answer.ts'
import type { Machine } from '../rules/machine.ts'
import { checked, renderSchema } from '../../../web/http/checked.ts'
import { ReleaseRequestSchema } from '../rules/release-request.ts'

interface ReleaseRouteDependencies {
  readonly releases: Releases
  /** What is fetched unless another tag is named. */
  tag(): string
}

const PAGE = '/ui/netboot'
const ANSWER = { type: 'object' } as const
/** Where the files are to be had; where they lie on this host is nobody's business. */
const ROOT = '/boot/'

export function releaseRoutes(
  { by, notices }: Pick<Site<Machine>, 'by' | 'notices'>,
  { releases, tag }: ReleaseRouteDependencies,
): readonly Route[] {
  const list = () => ({ boot_root: ROOT, max_parallel: 1, fetches: releases.jobs() })

  async function start(event: H3Event, body: unknown) {
    const asked = checked(ReleaseRequestSchema, body ?? {})
    return json(await releases.start(asked.tag ?? tag(), by(event)), 202)
  }

  async function cancel(event: H3Event) {
    const given = getRouterParam(event, 'tag', { decode: true }) ?? ''
    checked(ReleaseRequestSchema, { tag: given })
    const job = await releases.cancel(given, by(event))
    if (job === null) throw refuse(404, `no active release fetch for tag '${given}'`)
    return job
  }

  /** Without a tag: whatever is queued or running. */
  async function cancelAll(event: H3Event) {
    const active = releases.jobs().filter((job) => !isOver(job))
    return {
      cancelled: await Promise.all(active.map((job) => releases.cancel(job.tag, by(event)))),
    }
  }

  /** Back to the page, which says what came of it. */
  async function answerForm(event: H3Event, work: () => Promise<unknown>) {
    try {
      await work()
      return goTo(event, PAGE)
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      const error = [thrown.message, thrown.hint].filter(Boolean).join('. ')
      return goBack({ notices }, event, PAGE, { error })
    }
  }

  const startForm = (event: H3Event, form: URLSearchParams) =>
    answerForm(event, () => releases.start(readTag(form) ?? tag(), by(event)))

  const cancelForm = (event: H3Event, form: URLSearchParams) =>
    answerForm(event, () => releases.cancel(readTag(form) ?? '', by(event)))

  const useForm = (event: H3Event, form: URLSearchParams) =>
    answerForm(event, () => {
      const arch = BOOT_ARCHS.find((one) => one === form.get('arch'))
      if (arch === undefined) throw new Fault('misuse', 'an architecture must be named')
      return releases.use({ arch, version: form.get('version') ?? '' }, by(event))
    })

  return [
    {
      method: 'GET',
      path: '/boot/releases',
      access: 'read',
      doc: { summary: 'Fetches of releases by this process', answers: { 200: ANSWER } },
      handle: list,
    },
    {
      method: 'POST',
      path: '/boot/releases',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Begins to fetch a release',
        body: renderSchema(ReleaseRequestSchema, 'input'),
        answers: { 202: ANSWER },
      },
      handle: start,
    },
    {
      method: 'PUT',
      path: '/boot/releases',
      access: 'admin',
      handle() {
        throw refuse(400, 'releases is a route of this server: a boot file needs another name')
      },
    },
    {
      method: 'DELETE',
      path: '/boot/releases',
      access: 'admin',
      doc: { summary: 'Cancels every fetch that is queued or running', answers: { 200: ANSWER } },
      handle: cancelAll,
    },
    {
      method: 'DELETE',
      path: '/boot/releases/:tag',
      access: 'admin',
      doc: { summary: 'Cancels a fetch that is queued or running', answers: { 200: ANSWER } },
      handle: cancel,
    },
    {
      method: 'POST',
      path: `${PAGE}/fetch-release`,
      access: 'page',
      takes: 'form',
      handle: startForm,
    },
    {
      method: 'POST',
      path: `${PAGE}/cancel-fetch`,
      access: 'page',
      takes: 'form',
      handle: cancelForm,
    },
    { method: 'POST', path: `${PAGE}/use-set`, access: 'page', takes: 'form', handle: useForm },
  ]
}

/** Null: the field is absent or empty. */
function readTag(form: URLSearchParams): string | null {
  const given = (form.get('tag') ?? '').trim()
  if (given === '') return null
  if (ReleaseTagSchema.safeParse(given).success) return given
  throw new Fault('misuse', 'that is no tag', { hint: 'A tag looks like v1.2.3, or is latest.' })
}
