/** /ui/boot: the files of the live system, and how a release's are fetched. */
import { LIVE_SUMS, LIVE_TRIO } from '#appliance/assets.ts'
import { ReleaseTagSchema } from '#fleet/boot/rules/release.ts'
import { isOver } from '#kit/host/jobs.ts'
import type { FetchJob } from '#fleet/boot/releases.ts'
import { settle } from '#kit/host/watch.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { badge, banner, card, progress, refreshEvery, renderBytes } from '#kit/web/ui/elements.ts'
import { postButton, renderUploadForm, textField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import type { EarlierContext } from './machine-view.ts'
import { saveConfig } from '#server/pages/settings/file-posts.ts'
import { FIRST_BUTTON, readRefusals, renderFew } from '#server/pages/settings/settings-list.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'

const PATH = '/ui/boot'
export const BOOT_FILES = [...Object.values(LIVE_TRIO), LIVE_SUMS]
/** A shorter fetch is shown as ended. */
const PATIENCE_MS = 10_000

export const BOOT_PAGES = [
  pageAt(PATH, 'read', show, { reach: 'shared' }),
  formAt(
    `${PATH}/source`,
    'admin',
    (context: EarlierContext, form) => saveConfig(context, form, { page: PATH }),
    { reach: 'shared' },
  ),
  formAt(`${PATH}/fetch-release`, 'admin', fetchRelease, { reach: 'shared' }),
  formAt(
    `${PATH}/cancel-fetch`,
    'admin',
    async (context: EarlierContext, form) => {
      await context.services.releases.cancel(form.get('tag') ?? '', context.by())
      return seeOther(PATH)
    },
    { reach: 'shared' },
  ),
]

async function show(context: EarlierContext): Promise<Answer> {
  const { bootFiles, releases } = context.services
  const there = new Map((await bootFiles.list()).map((file) => [file.name, file]))
  const clock = context.clock()
  const [job] = releases.jobs()
  const isRunning = job !== undefined && !isOver(job)
  return await context.show({
    title: 'Boot files',
    // An error about the tag is shown at its field.
    messages: context.notice()?.errors['tag'] === undefined ? context.message() : null,
    body: html`${
      job === undefined
        ? null
        : html`<div ${refreshEvery('fetch', PATH, isRunning ? 2 : null)}>
            ${renderJob(job, clock)}
          </div>`
    }
    ${card({
      title: 'Live system',
      body: html`${renderSummary(Object.values(LIVE_TRIO).every((name) => there.has(name)))}
      ${renderTable({
        caption: 'Files of the live system',
        columns: ['File', 'State', numberColumn('Size'), 'Changed'],
        rows: BOOT_FILES.map((name) => {
          const file = there.get(name)
          return html`<tr>
            <th scope="row"><code>${name}</code></th>
            <td>${file === undefined ? badge('ready', 'missing') : badge('done', 'present')}</td>
            <td class="number">${renderBytes(file?.sizeBytes ?? null)}</td>
            <td class="nowrap">${renderTime(file?.modifiedAt ?? null, clock)}</td>
          </tr>`
        }),
      })}`,
    })}
    ${card({ title: 'Fetch a release', body: await renderFetch(context) })}
    ${card({
      title: 'Upload a file',
      body: renderUploadForm({
        kind: { name: 'files', to: '/boot/' },
        done: `${PATH}?uploaded=`,
        id: 'upload-file',
        label: 'Boot file',
        button: 'Upload',
        unscripted: 'Uploading from a browser needs JavaScript.',
      }),
    })}`,
  })
}

const renderSummary = (isWhole: boolean): Html =>
  isWhole
    ? html`<p>Machines boot the live system from this server.</p>`
    : banner(
        'needs-you',
        'Machines cannot boot the live system yet. Fetch a release below, or upload the files that are missing: they are part of every release.',
      )

const SOURCE = ['releases.base_url', 'boot.release_repo']

async function renderFetch(context: EarlierContext): Promise<Content> {
  const { services, notice } = context
  const { config, releases } = services
  const { boot, releases: site } = config.current()
  if (releases.obstacle() !== null) {
    const view = { paths: await config.listEditPaths(), refusals: readRefusals(context) }
    return html`<p>
        Enter the site and the repository where you got flasher. For https://github.com/owner/name,
        they are https://github.com and owner/name.
      </p>
      <form method="post" action="${PATH}/source" class="careful">
        ${FIRST_BUTTON}
        ${renderFew(
          view,
          SOURCE.flatMap((name) => config.list().filter((row) => row.name === name)),
        )}
        <button class="primary">Save</button>
      </form>`
  }
  const refused = notice()
  return html`<form method="post" action="${PATH}/fetch-release">
      ${textField({
        name: 'tag',
        label: 'Release',
        value: refused?.typed['tag'] ?? boot.release_tag,
        maxLength: 100,
        mono: true,
        hint: html`A tag such as <code>v1.2.3</code>, or <code>latest</code>.`,
        error: refused?.errors['tag'] ?? null,
      })}
      <button class="primary">Fetch release</button>
    </form>
    <p class="dim">
      ${fillHtml(
        'From {repository} at {site}. All files are verified with {sums}, then replaced together.',
        {
          repository: html`<code>${boot.release_repo}</code>`,
          site: html`<code>${site.base_url}</code>`,
          sums: LIVE_SUMS,
        },
      )}
    </p>`
}

const JOBS = {
  queued: 'queued',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const

function renderJob(job: FetchJob, clock: Clock): Html {
  const { tag, status, bytes_done: done, bytes_total: total, error } = job
  if (status === 'completed') {
    return banner('done', html`Release ${tag} was installed ${renderTime(job.finished_at, clock)}.`)
  }
  if (isOver(job)) {
    return banner(
      'failed',
      html`Release ${tag} was not installed: ${error}. The files have not changed.`,
    )
  }
  return card({
    title: `Fetching release ${tag}`,
    body: html`${progress(status === 'queued' ? null : done, total, job.artifact ?? JOBS[status])}
    ${postButton({ action: `${PATH}/cancel-fetch`, label: 'Cancel', values: { tag } })}`,
  })
}

/** A short fetch needs no second look at the page. */
async function fetchRelease(context: EarlierContext, form: URLSearchParams): Promise<Answer> {
  const { releases, config } = context.services
  const given = form.get('tag')?.trim() || config.current().boot.release_tag
  const tag = ReleaseTagSchema.safeParse(given)
  if (!tag.success) {
    const [error, typed] = ['Enter a tag such as v1.2.3, or latest.', { tag: given }]
    return context.goBack(PATH, { error, typed, errors: { tag: error }, anchor: 'tag' })
  }
  const obstacle = releases.obstacle()
  if (obstacle !== null)
    return context.goBack(PATH, { error: `Nothing can be fetched: ${obstacle}.` })
  await releases.start(tag.data, context.by())
  await settle(releases.awaitEnd(tag.data), PATIENCE_MS)
  return seeOther(PATH)
}
