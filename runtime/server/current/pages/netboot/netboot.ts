/** /ui/netboot: the live systems that machines boot, their releases, and the TFTP daemon. */
import type { Answer } from '#kit/web/answers/answers.ts'
import {
  badge,
  banner,
  card,
  copyBlock,
  progress,
  renderBytes,
  renderTabs,
  renderWays,
} from '#kit/web/ui/elements.ts'
import { postButton, textField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { refreshEvery } from '#kit/web/ui/refresh.ts'
import { numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { listIncomplete, type IncompleteSet, type ForeignSet } from '#fleet/boot/rules/boot-set.ts'
import { renderTftpSetup } from '#fleet/boot/rules/readiness.ts'
import type { BootFile, BootFolder, KnownSet } from '#fleet/boot/boot-files.ts'
import type { FetchJob } from '#fleet/boot/releases.ts'
import { isOver } from '#kit/host/jobs.ts'
import { STICK_FILES } from '#appliance/assets.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderEventList } from '../view/event-list.ts'
import { PAGES } from '#server/texts/texts.ts'
import { findTitle } from '#server/pages/settings/setting-fields.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import type { ClusterView } from '#fleet/cluster/presence.ts'
import { isSilent } from '#fleet/cluster/rules/member.ts'
import { standingOf } from '#fleet/cluster/rules/shared-netboot.ts'
import type { ShownSetting } from '#kit/config/rules/shown-setting.ts'
import { completeSource } from '#fleet/boot/rules/release.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { renderUploadForm } from '#kit/web/ui/upload-form.ts'

/** Three ways to install a live system on the Netboot page: fetch a release, upload its files, or build it. */
const PATH = '/ui/netboot'

/** Folded once machines boot one; a link to the card opens it. */
function renderInstall(context: CurrentContext): Html {
  const ways = renderWays([
    [PAGES.netboot.install.fetch.title, renderFetch(context)],
    [PAGES.netboot.install.upload.title, renderUpload()],
    [PAGES.netboot.install.build.title, renderBuild(context)],
  ])
  const isInstalled = Object.values(context.services.netboot.bootFiles.active()).some(Boolean)
  const isRefused = context.notice() !== null
  return isInstalled && !isRefused
    ? html`<details class="card">
        <summary>${PAGES.netboot.install.another}</summary>
        <div id="install">${ways}</div>
      </details>`
    : card({ title: PAGES.netboot.install.title, id: 'install', body: ways })
}

function renderFetch(context: CurrentContext): Html {
  const { services, notice } = context
  const rows = services.config.list()
  const site = find(rows, 'releases', 'base_url')
  const repository = find(rows, 'boot', 'release_repo')
  const set = { site: textOf(site), repository: textOf(repository) }
  const { typed, errors } = notice() ?? NOTHING_REFUSED
  const values = { ...completeSource(set, services.releaseSource), ...typed }
  const tag = typed['tag'] ?? services.config.current().boot.release_tag
  return html`<form method="post" action="${PATH}/fetch-release">
      ${sourceField(site, {
        name: 'site',
        label: PAGES.netboot.install.fetch.site,
        placeholder: 'https://github.com',
        hint: PAGES.netboot.install.fetch.siteHint,
        value: values.site,
        error: errors['site'] ?? null,
      })}
      ${sourceField(repository, {
        name: 'repository',
        label: PAGES.netboot.install.fetch.repository,
        placeholder: 'owner/name',
        hint: PAGES.netboot.install.fetch.repositoryHint,
        value: values.repository,
        error: errors['repository'] ?? null,
      })}
      ${textField({
        name: 'tag',
        label: PAGES.netboot.install.fetch.tag,
        value: tag,
        error: errors['tag'] ?? null,
        hint: fillHtml(PAGES.netboot.install.fetch.tagHint, {
          tag: html`<code>v1.4.0</code>`,
          latest: html`<code>latest</code>`,
        }),
      })}
      <button class="primary">${PAGES.netboot.install.fetch.button}</button>
      <p class="hint">${PAGES.netboot.install.fetch.hint}</p>
    </form>
    ${renderCurlBlock(context, [
      { method: 'POST', path: '/boot/releases', body: tag === '' ? {} : { tag }, scope: 'admin' },
    ])}`
}

const NOTHING_REFUSED: Pick<Notice, 'typed' | 'errors'> = { typed: {}, errors: {} }

const textOf = (row: ShownSetting | undefined): string => row?.text ?? ''

const find = (rows: readonly ShownSetting[], section: string, key: string) =>
  rows.find((row) => row.section === section && row.key === key)

interface SourceField {
  readonly name: 'site' | 'repository'
  readonly label: string
  readonly placeholder: string
  readonly hint: string
  readonly value: string
  readonly error: string | null
}

/** Read-only where the environment sets it. */
function sourceField(row: ShownSetting | undefined, { label, ...field }: SourceField): Content {
  if (row?.origin.by === 'environment') {
    return html`<div class="field">
      <strong>${label}</strong>
      <p><code>${row.shown}</code></p>
      <p class="hint">
        ${fillHtml(PAGES.netboot.install.fetch.setBy, { variable: html`<code>${row.origin.variable}</code>` })}
      </p>
    </div>`
  }
  return textField({ ...field, label, mono: true })
}

/** A script sends files by `PUT /boot/<name>`, checksums first so that the rest is checked. */
const renderUpload = (): Html =>
  renderUploadForm({
    kind: { name: 'files', to: '/boot/' },
    done: `${PATH}?uploaded=`,
    id: 'boot-files',
    label: PAGES.netboot.install.upload.label,
    hint: fillHtml(PAGES.netboot.install.upload.hint, {
      name: html`<code>flasher-netboot-pc-x86_64-v1.4.0.vmlinuz</code>`,
      sums: html`<code>.sha256</code>`,
    }),
    accept: '.vmlinuz,.initrd,.squashfs,.sha256,.efi,.zip,.html',
    isMultiple: true,
    button: PAGES.netboot.install.upload.button,
    unscripted: PAGES.netboot.install.upload.unscripted,
  })

const renderBuild = ({ services }: CurrentContext): Html => {
  const { dir } = services.netboot.bootFiles
  return html`<p>${PAGES.netboot.install.build.text}</p>
    ${copyBlock(
      `npx pnpm build:images netboot-pc\ncp dist/flasher-netboot-pc-* ${dir}/\n`,
      PAGES.netboot.install.build.label,
    )}
    <p class="hint">
      ${fillHtml(PAGES.netboot.install.build.hint, { folder: html`<code>${dir}</code>` })}
    </p>`
}

/** The card of the live system on the other servers of a fleet: which of them have it, and what keeps one from it. */
const TONES = { whole: 'done', copying: 'ready', troubled: 'needs-you' } as const

/** `view` null: a single server, or the database is away. Silent servers are not shown. */
function renderServers(view: ClusterView | null): Content {
  const row = view?.netboot ?? null
  if (view === null || row === null) return null
  const servers = view.members
    .filter((each) => !isSilent(each))
    .map(({ name, facts: { netboot } }) => ({ name, netboot, standing: standingOf(netboot, row) }))
  const isEvery = servers.every(({ standing }) => standing === 'whole')
  return card({
    title: PAGES.netboot.servers.title,
    id: 'servers',
    body: isEvery
      ? html`<p>${fillCount(PAGES.netboot.servers.every, servers.length)}</p>`
      : html`<p>${PAGES.netboot.servers.some}</p>
          <ul class="rows">
            ${servers.map(
              ({ name, netboot, standing }) =>
                html`<li>
                  <span class="grow"
                    ><strong>${name}</strong
                    ><span class="small dim missing">${netboot.trouble}</span></span
                  >${badge(TONES[standing], PAGES.netboot.servers.states[standing])}
                </li>`,
            )}
          </ul>`,
  })
}

const t = PAGES.netboot

const TABS = [
  [t.systems.title, '#artifacts'],
  [t.tabs.install, '#install'],
  [t.tftp.title, '#tftp'],
  [t.activity.title, '#activity'],
] as const

/** Posts: `routes/releases.ts`. */
export const NETBOOT_PAGES = [pageAt(PATH, 'read', show, { reach: 'shared' })]

async function show(context: CurrentContext): Promise<Answer> {
  const { releases, bootFiles } = context.services.netboot
  const clock = context.clock()
  const [files, events] = await Promise.all([
    bootFiles.list(),
    context.site.journal.list({ subject_kind: 'netboot', limit: 12 }),
  ])
  const shown = releases.jobs().filter((job) => !isOver(job) || job.status === 'failed')
  const recent = shown.filter((job) => isRecent(job, clock))
  const earlier = shown.filter((job) => !isRecent(job, clock))
  const isBusy = releases.jobs().some((job) => !isOver(job))
  return await context.show({
    title: PAGES.frame.titles.netboot,
    section: PATH,
    actions: html`<a class="button" href="#install">${t.install.title}</a>`,
    messages: html`${context.message()}${renderUploaded(context)}`,
    body: html`${renderTabs(TABS)}
      <div class="board" ${refreshEvery('netboot', PATH, isBusy ? 1 : null)}>
        ${renderJobs(context, t.downloads.title, recent)}
        ${card({ title: t.systems.title, id: 'artifacts', body: renderArtifacts(bootFiles, files, clock) })}
        ${renderServers(context.services.presence?.view() ?? null)} ${renderInstall(context)}
        ${renderStick(files)} ${renderTftp(context)}
        ${renderJobs(context, t.downloads.earlier, earlier)}
        ${card({
          title: t.activity.title,
          id: 'activity',
          aside: html`<a class="small" href="/ui/events?subject_kind=netboot"
            >${t.activity.all}</a
          >`,
          body: renderEventList(events, clock),
        })}
      </div>`,
  })
}

/** Milliseconds for which a failure stands above what machines boot. */
const NEWS_MS = 60 * 60_000

const isRecent = (job: FetchJob, { now }: Clock): boolean =>
  !isOver(job) || now.getTime() - Date.parse(job.finished_at ?? '') < NEWS_MS

function renderJobs(context: CurrentContext, title: string, jobs: readonly FetchJob[]): Content {
  if (jobs.length === 0) return null
  const shown = jobs.slice(0, 4)
  const calls = shown
    .filter((job) => !isOver(job))
    .map(({ tag }): CurlCall => ({
      method: 'DELETE',
      path: `/boot/releases/${encodeURIComponent(tag)}`,
      scope: 'admin',
    }))
  return card({
    title,
    body: html`<ul class="rows">
        ${shown.map((job) => renderJob(job, context.clock()))}
      </ul>
      ${renderCurlBlock(context, calls, 'curl-fetches')}`,
  })
}

function renderJob(job: FetchJob, clock: Clock): Html {
  const { tag, status, artifact, bytes_done: bytes, bytes_total: total, error } = job
  if (isOver(job)) {
    return html`<li>
      ${badge('failed', PAGES.frame.jobs[status])}<span class="grow"
        >${fill(t.downloads.failed, { tag, error: error ?? '' })}</span
      >
      <span class="when">${renderTime(job.finished_at, clock)}</span>
    </li>`
  }
  const state = PAGES.frame.jobs[status]
  const label =
    total === null || total === 0
      ? state
      : fill(t.downloads.share, { state, percent: Math.floor((100 * bytes) / total) })
  const step = html`<span class="dim small">${artifact ?? state}</span>`
  return html`<li>
    <span class="grow">${fillHtml(t.downloads.running, { tag, step })}</span>
    ${progress(status === 'queued' ? null : bytes, total, label)}
    ${postButton({ action: `${PATH}/cancel-fetch`, label: PAGES.frame.cancel, values: { tag } })}
  </li>`
}

function renderArtifacts(
  bootFiles: Pick<BootFolder, 'sets' | 'setAside'>,
  files: readonly BootFile[],
  clock: Clock,
): Content {
  if (files.length === 0) {
    return html`<p>${t.systems.none}</p>`
  }
  const [sets, names] = [bootFiles.sets(), files.map(({ name }) => name)]
  return html`${sets.length === 0 ? html`<p>${t.systems.incomplete}</p>` : null}
    <ul class="rows">
      ${sets.map(renderSet)} ${listIncomplete(names).map(renderIncomplete)}
      ${bootFiles.setAside().map(renderAside)}
    </ul>
    ${renderTable({
      caption: t.files.caption,
      columns: [t.files.file, numberColumn(t.files.size), t.files.added],
      rows: files.map(
        ({ name, sizeBytes, modifiedAt }) =>
          html`<tr>
            <th scope="row">
              <a class="mono" href="/boot/${encodeURIComponent(name)}">${name}</a>
            </th>
            <td class="number" data-label="${t.files.size}">${renderBytes(sizeBytes)}</td>
            <td class="nowrap" data-label="${t.files.added}">${renderTime(modifiedAt, clock)}</td>
          </tr>`,
      ),
    })}`
}

/** Downloads: browsers let a page write to a stick when it is a local file, not over plain HTTP. */
function renderStick(files: readonly BootFile[]): Content {
  const { page, archive } = STICK_FILES
  if (![page, archive].every((name) => files.some((file) => file.name === name))) return null
  const sentence = fillHtml(t.stick.text, {
    page: renderDownload(page),
    archive: renderDownload(archive),
  })
  return card({ title: t.stick.title, body: html`<p>${sentence}</p>` })
}

const renderDownload = (name: string): Html => html`<a href="/boot/${name}" download>${name}</a>`

/** `why` machines cannot boot it. */
const renderUnused = (
  { arch, version }: Pick<IncompleteSet, 'arch' | 'version'>,
  why: string,
  word: string,
): Html =>
  html`<li>
    <span class="grow"
      ><strong>${version}</strong> <span class="tag">${arch}</span
      ><span class="small dim missing">${why}</span></span
    >${badge('needs-you', word)}
  </li>`

const renderIncomplete = (set: IncompleteSet): Html =>
  renderUnused(
    set,
    fill(t.systems.missing, { names: set.missing.join(', ') }),
    t.systems.isIncomplete,
  )

/** Files of another system, such as the deployed one, under the same names. */
const renderAside = (set: ForeignSet): Html => renderUnused(set, set.reason, t.systems.notUsed)

const renderSet = ({ arch, version, isActive, isPrevious }: KnownSet): Html =>
  html`<li>
    <span class="grow"><strong>${version}</strong> <span class="tag">${arch}</span></span>
    ${
      isActive
        ? badge('done', t.systems.active)
        : postButton({
            action: `${PATH}/use-set`,
            label: fill(isPrevious ? t.systems.goBack : t.systems.use, { version }),
            values: { arch, version },
          })
    }
  </li>`

/** From the address, as the upload script wrote it. */
function renderUploaded({ query }: CurrentContext): Content {
  const count = Number(query.get('uploaded') ?? 0)
  if (!Number.isInteger(count) || count < 1) return null
  return banner('done', fillCount(t.uploaded, count))
}

function renderTftp({ services, contact }: CurrentContext): Html {
  const { isChecked, isActive, isReady, text, hint } = services.netboot.tftp()
  const tone = isReady ? 'done' : isActive ? 'needs-you' : isChecked ? 'failed' : 'ready'
  const word = isActive ? t.tftp.active : isChecked ? t.tftp.inactive : t.tftp.unchecked
  return card({
    title: t.tftp.title,
    id: 'tftp',
    aside: badge(tone, word),
    body: html`<p>${text} ${hint}</p>
      ${isReady ? null : renderTftpHelp(services.netboot.reachedAt(contact().baseUrl))}
      <p class="dim small">
        ${fillHtml(t.tftp.note, {
          setting: html`<a href="/ui/settings#netboot.tftp_probe_host"
            >${findTitle(services.settingTexts, 'netboot.tftp_probe_host')}</a
          >`,
        })}
      </p>`,
  })
}

const renderTftpHelp = (baseUrl: string): Html =>
  html`<p>${t.tftp.help}</p>
    ${copyBlock(renderTftpSetup(baseUrl), t.tftp.label)}`
