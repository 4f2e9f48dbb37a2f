/** /ui/netboot: the live systems that machines boot, their releases, and the TFTP daemon, which has a page of its own as well. */
import type { Answer } from '#kit/web/answers/answers.ts'
import {
  badge,
  banner,
  card,
  copyBlock,
  foldedCard,
  progress,
  refreshEvery,
  renderBytes,
  renderJumps,
  renderWays,
} from '#kit/web/ui/elements.ts'
import { hidden, postButton, renderUploadForm, textField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { listIncomplete, type IncompleteSet, type ForeignSet } from '#fleet/boot/rules/boot-set.ts'
import { renderTftpSetup } from '#fleet/boot/rules/readiness.ts'
import type { BuiltSet } from '#fleet/boot/boot-sets.ts'
import type { BootFile, BootFolder, KnownSet } from '#fleet/boot/boot-files.ts'
import type { FetchJob } from '#fleet/boot/releases.ts'
import { isOver } from '#kit/host/jobs.ts'
import { STICK_FILES } from '#appliance/assets.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderEventList } from '#server/current/view/event-list.ts'
import { SETTINGS } from '#server/current/settings/rules/settings.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import type { ClusterView } from '#fleet/cluster/presence.ts'
import { isSilent } from '#fleet/cluster/rules/lease.ts'
import { standingOf } from '#fleet/cluster/rules/shared-netboot.ts'
import type { ShownSetting } from '#kit/config/rules/settings-parser.ts'
import { completeSource, LATEST } from '#fleet/boot/rules/release.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'

const PATH = '/ui/netboot'

/** Folded once machines boot one; a link to the card opens it. */
function renderInstall(
  context: CurrentContext,
  built: readonly BuiltSet[],
  isFresh: boolean,
): Html {
  const [fetch, offline] = [renderFetch(context), OFFLINE]
  const body = html`${built.map(renderBuilt)}${
    readSource(context).isKnown
      ? html`${fetch}
          <details>
            <summary>Offline</summary>
            ${renderWays(offline)}
          </details>`
      : renderWays([['Fetch a release', fetch], ...offline])
  }`
  const isRefused = context.notice() !== null
  return isFresh || isRefused
    ? card({ title: 'Get the live system', id: 'install', body })
    : html`<details class="card">
        <summary>Install another version</summary>
        <div id="install">${body}</div>
      </details>`
}

const renderBuilt = ({ arch, version, folder }: BuiltSet): Html =>
  html`<form method="post" action="${PATH}/take-built" class="row">
    ${hidden({ arch, version })}
    <button class="primary">Install ${version} (${arch})</button>
    <span class="hint">It lies on this server in <code>${folder}</code>.</span>
  </form>`

/** Known: whose releases are fetched. Otherwise one field takes the address of their page. */
function readSource({ services, notice }: CurrentContext) {
  const rows = services.config.list()
  const site = find(rows, 'releases', 'base_url')
  const repository = find(rows, 'boot', 'release_repo')
  const set = { site: textOf(site), repository: textOf(repository) }
  const { typed, errors } = notice() ?? NOTHING_REFUSED
  const values = { ...completeSource(set, services.releaseSource), ...typed }
  const isKnown =
    values.repository !== '' || 'repository' in errors || site?.origin.by === 'environment'
  return { site, repository, values, errors, isKnown, page: typed['site'] ?? set.site }
}

function renderFetch(context: CurrentContext): Html {
  const { site, repository, values, errors, isKnown, page } = readSource(context)
  const tag = context.notice()?.typed['tag'] ?? context.services.config.current().boot.release_tag
  const siteError = errors['site'] ?? null
  return html`<form method="post" action="${PATH}/fetch-release">
      ${
        isKnown
          ? html`${sourceField(site, {
              name: 'site',
              label: 'Release site',
              placeholder: 'https://github.com',
              hint: 'Address of GitHub, Gitea or a plain web server with releases.',
              value: values.site,
              error: siteError,
            })}
            ${sourceField(repository, {
              name: 'repository',
              label: 'Repository',
              placeholder: 'owner/name',
              hint: 'The owner and the name, as in the address of the repository.',
              value: values.repository,
              error: errors['repository'] ?? null,
            })}`
          : html`${hidden({ repository: '' })}
            ${sourceField(site, {
              name: 'site',
              label: 'Address of the project',
              placeholder: 'https://github.com/owner/name',
              hint: 'The page where you got flasher: GitHub, Gitea or a web server with releases.',
              value: page,
              error: siteError,
            })}`
      }
      ${textField({
        name: 'tag',
        label: 'Release',
        value: tag,
        error: errors['tag'] ?? null,
        hint: html`A tag such as <code>v1.4.0</code>, or <code>latest</code>.`,
      })}
      <button class="primary">Fetch release</button>
      <p class="hint">The files are verified before machines boot them.</p>
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
      <p class="hint">Set by the environment variable <code>${row.origin.variable}</code>.</p>
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
    label: 'Kernel, initrd and squashfs',
    hint: fillHtml(
      'Use the names of a release: {name}. If you add the {sums} file, the others are checked against it.',
      {
        name: html`<code>flasher-netboot-pc-x86_64-v1.4.0.vmlinuz</code>`,
        sums: html`<code>.sha256</code>`,
      },
    ),
    accept: '.vmlinuz,.initrd,.squashfs,.sha256,.efi,.zip,.html',
    isMultiple: true,
    button: 'Upload',
    unscripted:
      'Uploading here needs JavaScript. Without it, copy the files into the boot directory of the server.',
  })

const renderBuild = (): Html =>
  html`<p class="hint">
    Run <code>npx pnpm build:images netboot-pc</code> as root in the checkout that this server runs
    from, then load this page again.
  </p>`

/** The card of the live system on the other servers of a fleet: which of them have it, and what keeps one from it. */
const TONES = { whole: 'done', copying: 'ready', troubled: 'needs-you' } as const

const SERVER_STATES = { whole: 'here', copying: 'copying', troubled: 'missing' } as const

/** `view` null: a single server, or the database is away. Silent servers are not shown. */
function renderServers(view: ClusterView | null): Content {
  const row = view?.netboot ?? null
  if (view === null || row === null) return null
  const servers = view.members
    .filter((each) => !isSilent(each))
    .map(({ name, facts: { netboot } }) => ({ name, netboot, standing: standingOf(netboot, row) }))
  const isEvery = servers.every(({ standing }) => standing === 'whole')
  return card({
    title: 'On all servers',
    id: 'servers',
    body: isEvery
      ? html`<p>
          ${fillCount({ one: 'This server has it.', other: 'All {count} servers have it.' }, servers.length)}
        </p>`
      : html`<p>
            ${'Servers copy it from each other. Machines boot what a server has whole; it asks the one that leads for the rest.'}
          </p>
          <ul class="rows">
            ${servers.map(
              ({ name, netboot, standing }) =>
                html`<li>
                  <span class="grow"
                    ><strong>${name}</strong
                    ><span class="small dim missing">${netboot.trouble}</span></span
                  >${badge(TONES[standing], SERVER_STATES[standing])}
                </li>`,
            )}
          </ul>`,
  })
}

const OFFLINE = [
  ['Upload its files', renderUpload()],
  ['Build it', renderBuild()],
] as const

const JUMPS = [
  ['Live systems', '#artifacts'],
  ['Install', '#install'],
  ['TFTP daemon', '#tftp'],
  ['Activity', '#activity'],
] as const

/** Posts: `routes/releases.ts`. */
export const NETBOOT_PAGES = [
  pageAt(PATH, 'read', show, { reach: 'shared' }),
  pageAt(`${PATH}/tftp`, 'read', showTftp, { reach: 'shared' }),
]

async function show(context: CurrentContext): Promise<Answer> {
  const { releases, bootFiles, listBuilt } = context.services.netboot
  const clock = context.clock()
  const [files, built, events] = await Promise.all([
    bootFiles.list(),
    listBuilt(),
    context.site.journal.list({ subject_kind: 'netboot', limit: 12 }),
  ])
  const jobs = releases.jobs()
  const active = jobs.filter((job) => !isOver(job))
  const failed = listFailed(jobs)
  const isFresh = !Object.values(bootFiles.active()).some(Boolean)
  const failures = renderJobs(
    context,
    'Failed downloads',
    failed.filter((job) => isRecent(job, clock)),
  )
  const install = renderInstall(context, built, isFresh)
  return await context.show({
    title: 'Network boot',
    learn: 'pxe.html',
    messages: html`${context.message()}${renderUploaded(context)}`,
    body: html`${renderJumps(JUMPS)}
      <div class="board" ${refreshEvery('netboot', PATH, active.length > 0 ? 1 : null)}>
        ${renderJobs(context, 'Downloads', active)} ${isFresh ? [failures, install] : null}
        ${card({ title: 'Live systems', id: 'artifacts', body: html`${renderNext(context)}${renderArtifacts(bootFiles, files, clock)}` })}
        ${isFresh ? null : failures} ${renderServers(context.services.presence?.view() ?? null)}
        ${isFresh ? null : install} ${renderStick(files)}
        ${foldedCard({ ...viewTftp(context), isOpen: false })}
        ${renderJobs(
          context,
          'Earlier failed downloads',
          failed.filter((job) => !isRecent(job, clock)),
        )}
        ${foldedCard({
          title: 'Activity',
          id: 'activity',
          about: 'What was done to live systems',
          isOpen: false,
          body: html`${renderEventList(events, clock)}
            <p class="small">
              <a href="/ui/events?subject_kind=netboot">All network boot events</a>
            </p>`,
        })}
      </div>`,
  })
}

/** Newest first; a later download that succeeded is the answer to those before it. */
function listFailed(jobs: readonly FetchJob[]): readonly FetchJob[] {
  const done = jobs.findIndex(({ status }) => status === 'completed')
  return (done === -1 ? jobs : jobs.slice(0, done)).filter(({ status }) => status === 'failed')
}

/** Until a machine has come. */
function renderNext({ site, services }: CurrentContext): Content {
  const isInstalled = Object.values(services.netboot.bootFiles.active()).some(Boolean)
  if (!isInstalled || site.machines.peekAll().some(({ last_seen_at: at }) => at !== null))
    return null
  return banner(
    'ready',
    html`Machines boot it from now on. Next: <a href="/ui/dhcp">set up DHCP</a>.`,
  )
}

/** Milliseconds for which a failure stands beside what machines boot. */
const NEWS_MS = 60 * 60_000

const isRecent = (job: FetchJob, { now }: Clock): boolean =>
  now.getTime() - Date.parse(job.finished_at ?? '') < NEWS_MS

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

const JOBS = {
  queued: 'queued',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const

function renderJob(job: FetchJob, clock: Clock): Html {
  const { tag, status, artifact, bytes_done: bytes, bytes_total: total, error } = job
  if (isOver(job)) {
    return html`<li>
      ${badge('failed', JOBS[status])}<span class="grow"
        >Couldn't fetch ${tag === LATEST ? 'the latest release' : `release ${tag}`}:
        ${error ?? ''}.</span
      >
      <span class="when">${renderTime(job.finished_at, clock)}</span>
    </li>`
  }
  const state = JOBS[status]
  const label =
    total === null || total === 0 ? state : `${state}, ${Math.floor((100 * bytes) / total)} %`
  const step = html`<span class="dim small">${artifact ?? state}</span>`
  return html`<li>
    <span class="grow">Release ${tag} ${step}</span>
    ${progress(status === 'queued' ? null : bytes, total, label)}
    ${postButton({ action: `${PATH}/cancel-fetch`, label: 'Cancel', values: { tag } })}
  </li>`
}

function renderArtifacts(
  bootFiles: Pick<BootFolder, 'sets' | 'setAside'>,
  files: readonly BootFile[],
  clock: Clock,
): Content {
  if (files.length === 0) {
    return html`<p>
      ${'No live system is installed. Machines boot one from the network to be flashed; until then they can only boot their own disks.'}
    </p>`
  }
  const [sets, names] = [bootFiles.sets(), files.map(({ name }) => name)]
  return html`${sets.length === 0 ? html`<p>A live system is a kernel (.vmlinuz), an initrd and a squashfs of the same version. None is complete yet.</p>` : null}
    <ul class="rows">
      ${sets.map(renderSet)} ${listIncomplete(names).map(renderIncomplete)}
      ${bootFiles.setAside().map(renderAside)}
    </ul>
    ${renderTable({
      caption: 'Files in the boot directory',
      columns: ['File', numberColumn('Size'), 'Added'],
      rows: files.map(
        ({ name, sizeBytes, modifiedAt }) =>
          html`<tr>
            <th scope="row">
              <a class="mono" href="/boot/${encodeURIComponent(name)}">${name}</a>
            </th>
            <td class="number" data-label="Size">${renderBytes(sizeBytes)}</td>
            <td class="nowrap" data-label="Added">${renderTime(modifiedAt, clock)}</td>
          </tr>`,
      ),
    })}`
}

/** Downloads: browsers let a page write to a stick when it is a local file, not over plain HTTP. */
function renderStick(files: readonly BootFile[]): Content {
  const { page, archive } = STICK_FILES
  if (![page, archive].every((name) => files.some((file) => file.name === name))) return null
  const sentence = fillHtml(
    'Save {page} and {archive}, then open the page in Chrome, Edge or another Chromium browser: it copies the live system to a FAT32 stick, from which PCs with UEFI start without this server.',
    {
      page: renderDownload(page),
      archive: renderDownload(archive),
    },
  )
  return card({ title: 'Make a USB stick', body: html`<p>${sentence}</p>` })
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
  renderUnused(set, `Missing: ${set.missing.join(', ')}`, 'incomplete')

/** Files of another system, such as the deployed one, under the same names. */
const renderAside = (set: ForeignSet): Html => renderUnused(set, set.reason, 'not used')

const renderSet = ({ arch, version, isActive, isPrevious }: KnownSet): Html =>
  html`<li>
    <span class="grow"><strong>${version}</strong> <span class="tag">${arch}</span></span>
    ${
      isActive
        ? badge('done', 'active')
        : postButton({
            action: `${PATH}/use-set`,
            label: fill(isPrevious ? 'Go back to {version}' : 'Use {version}', { version }),
            values: { arch, version },
          })
    }
  </li>`

/** From the address, as the upload script wrote it. */
function renderUploaded({ query }: CurrentContext): Content {
  const count = Number(query.get('uploaded') ?? 0)
  if (!Number.isInteger(count) || count < 1) return null
  return banner(
    'done',
    fillCount({ one: 'The file was uploaded.', other: '{count} files were uploaded.' }, count),
  )
}

/** The card of `/ui/netboot/tftp`, which is folded on the other page. */
function viewTftp({ services, contact }: CurrentContext) {
  const { isChecked, isActive, isReady, text, hint } = services.netboot.tftp()
  const tone = isReady ? 'done' : isActive ? 'needs-you' : 'ready'
  const state = badge(tone, isActive ? 'active' : isChecked ? 'inactive' : 'not checked yet')
  return {
    title: 'TFTP daemon',
    id: 'tftp',
    aside: state,
    about: state,
    body: html`<p>${text} ${hint}</p>
      ${isReady ? null : renderTftpHelp(services.netboot.reachedAt(contact().baseUrl))}
      <p class="dim small">
        ${fillHtml(
          'This page only checks the daemon; start and stop it on its host. To check another host, change {setting}.',
          {
            setting: html`<a href="/ui/settings#netboot.tftp_probe_host"
              >${SETTINGS.netboot.tftp_probe_host.title}</a
            >`,
          },
        )}
      </p>`,
  }
}

async function showTftp(context: CurrentContext): Promise<Answer> {
  const body = card(viewTftp(context))
  return await context.show({ title: 'TFTP check', learn: 'pxe.html', body })
}

const renderTftpHelp = (baseUrl: string): Html =>
  html`<p>
      ${'BIOS machines and most UEFI firmware load their first file by TFTP. These commands set it up on a Debian host; UEFI HTTP Boot needs none of it.'}
    </p>
    ${copyBlock(renderTftpSetup(baseUrl), 'Commands that set up a TFTP daemon')}`
