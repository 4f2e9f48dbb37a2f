/** The limits that pages quote, and where the code has them. Whoever changes one of the two learns of the other. */
import { SETTINGS } from '../../../runtime/server/current/rules/settings.ts'
import { numberIn } from './constants.ts'

export interface Limit {
  readonly page: string
  /** A piece of the page in which `{}` stands for the number, in digits or in a word; a blank stands for any. */
  readonly says: string
  /** What the code has, in the unit of the page. */
  readonly is: () => number
}

/** `says` of a page, and the constant of a file; a unit of the page has `per` of the constant's. */
const of = (page: string, says: string, file: string, name: string, per = 1): Limit => ({
  page: `docs/${page}.md`,
  says,
  is: () => numberIn(file, name) / per,
})

const ofSetting = (page: string, says: string, fallback: unknown, per = 1): Limit => ({
  page: `docs/${page}.md`,
  says,
  is: () => Number(fallback) / per,
})

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB
const MINUTE_MS = 60_000

const LABEL = 'runtime/server/current/rules/label.ts'
const WEB = 'runtime/kit/web/answers/limits.ts'
const THROTTLE = 'runtime/kit/web/access/rules/login-throttle.ts'
const INVENTORY = 'runtime/engine/inventory/rules/inventory.ts'
const SEARCHES = 'runtime/server/current/pages/machines/saved-searches.ts'
const LANES = 'runtime/kit/web/access/login-lanes.ts'
const SITE = 'runtime/flasher/link/server-site.ts'
const ARRIVALS = 'runtime/cache/arrivals/arrivals.ts'

export const LIMITS: readonly Limit[] = [
  of(
    'several-servers',
    'The key itself has at least {} characters',
    'runtime/server/app/shared-state.ts',
    'FEWEST',
  ),
  of(
    'several-servers',
    'has been silent for {} minutes',
    'runtime/fleet/cluster/rules/member.ts',
    'GONE_SECONDS',
    60,
  ),
  ofSetting(
    'first-boot',
    '`[proof] limit`](settings.md) ({} minutes)',
    SETTINGS.proof.limit.fallback,
    60,
  ),
  of(
    'growing',
    'a host that is gone after {} seconds',
    'runtime/fleet/cluster/rules/lease.ts',
    'LEASE_MS',
    1000,
  ),
  of(
    'cache',
    'asked (at most every {} seconds)',
    'runtime/cache/follow/presences.ts',
    'ASKED_MS',
    1000,
  ),
  of(
    'cache',
    'last of the disk; {} MiB stay free',
    'runtime/cache/blobs/blob-room.ts',
    'MARGIN_BYTES',
    MIB,
  ),
  of('api', 'up to {} printable characters', LABEL, 'MAX_NAME_CHARACTERS'),
  of('api', 'up to {}, each of up to', LABEL, 'MAX_LABELS'),
  of('api', 'each of up to {} letters', LABEL, 'MAX_LABEL_CHARACTERS'),
  of('api', 'at most every {} s; `GET /runs', 'runtime/server/updates/channel.ts', 'BARS_MS', 1000),
  of('api', 'With `view=…`, up to {} times', WEB, 'views'),
  of('api', 'or nested deeper than {} levels', WEB, 'jsonDepth'),
  of('api', 'JSON bodies: {} MiB', WEB, 'json', MIB),
  of('api', 'Inventories: {} MiB', WEB, 'inventory', MIB),
  of('api', 'first {} disks', INVENTORY, 'MAX_DISKS'),
  of('api', '`lshw` of up to {} MiB', INVENTORY, 'MAX_HARDWARE_BYTES', MIB),
  of('api', 'and {} values are kept', INVENTORY, 'MAX_HARDWARE_VALUES'),
  of('api', 'One bulk call: {} machines', WEB, 'bulkMachines'),
  of('api', 'Tokens: {}.', 'runtime/server/routes/tokens.ts', 'MAX_TOKENS'),
  of(
    'api',
    'The body is limited to {} KiB',
    'runtime/engine/inventory/rules/run.ts',
    'MAX_PROGRESS_BYTES',
    KIB,
  ),
  ofSetting('api', '`[pxe] run_patience` ({} s)', SETTINGS.pxe.run_patience.fallback),
  ofSetting('server', '`[pxe] run_patience` ({} s)', SETTINGS.pxe.run_patience.fallback),
  ofSetting(
    'server',
    '`[pxe] flash_silence` ({} minutes)',
    SETTINGS.pxe.flash_silence.fallback,
    60,
  ),
  ofSetting('server', '`[pxe] tokens_hours` ({})', SETTINGS.pxe.tokens_hours.fallback),
  ofSetting('server', '`[retention] runs` ({})', SETTINGS.retention.runs.fallback),
  ofSetting('server', '`run_days` ({})', SETTINGS.retention.run_days.fallback),
  ofSetting(
    'power',
    '`[power] patience`](settings.md) ({} minutes)',
    SETTINGS.power.patience.fallback,
    60,
  ),
  of(
    'server',
    'asks again every {} seconds until it is its turn',
    'runtime/server/current/rules/queue.ts',
    'WAIT_SECONDS',
  ),
  of('server', 'at most {} per machine', 'runtime/fleet/run/runs.ts', 'MAX_OF_ONE'),
  of('server', '{} MiB of compressed logs', 'runtime/fleet/run/run-logs.ts', 'MAX_IN_ALL', MIB),
  of('server', 'keeps up to {} searches', SEARCHES, 'MAX_SEARCHES'),
  of('server', 'and so on up to {} minutes', THROTTLE, 'MAX_SECONDS', 60),
  of('server', 'At most {} passwords per network', LANES, 'MAX_CHECKS_OF_NETWORK'),
  of(
    'server',
    'at least {} characters)',
    'runtime/kit/web/access/rules/new-password.ts',
    'MIN_PASSWORD_LENGTH',
  ),
  of(
    'server',
    'damaged, more than {} GiB unpacked',
    'runtime/fleet/boot/initrd-kind.ts',
    'MAX_BYTES',
    GIB,
  ),
  of('cache', 'and so on up to {} minutes', THROTTLE, 'MAX_SECONDS', 60),
  of(
    'cache',
    '{} MiB of the disk are kept free',
    'runtime/cache/blobs/blob-room.ts',
    'MARGIN_BYTES',
    MIB,
  ),
  of('cache', 'at most {} are unfinished at a time', ARRIVALS, 'MAX_ARRIVALS'),
  of(
    'cache',
    'Prefer: wait=SECONDS` ({} at most)',
    'runtime/kit/net/rules/waiting.ts',
    'MAX_WAIT_SECONDS',
  ),
  of('capture', 'At most {} are unfinished or waiting', ARRIVALS, 'MAX_ARRIVALS'),
  of(
    'capture',
    'More than {} GiB of free space',
    'runtime/engine/capture/rules/capture.ts',
    'MAX_HASHED_FREE_BYTES',
    GIB,
  ),
  of(
    'image-format',
    'more than {} GiB of free space',
    'runtime/engine/capture/rules/capture.ts',
    'MAX_HASHED_FREE_BYTES',
    GIB,
  ),
  of(
    'cli',
    'sent in chunks of {} MiB',
    'runtime/kit/net/registry/blob-upload.ts',
    'CHUNK_BYTES',
    MIB,
  ),
  of(
    'performance',
    'Writes are direct (`O_DIRECT`), {} MiB',
    'runtime/engine/flash/write-slots.ts',
    'SLOT_BYTES',
    MIB,
  ),
  of('performance', 'MiB, {} at a time', 'runtime/engine/flash/write-slots.ts', 'DEPTH'),
  of(
    'performance',
    'Runs of zeros of {} KiB and more',
    'runtime/engine/disk/rules/extents.ts',
    'SHORTEST_ZERO_RUN',
    KIB,
  ),
  of(
    'performance',
    'Boot files are read in chunks of {} KiB',
    'runtime/kit/web/answers/file-answer.ts',
    'READ_BYTES',
    KIB,
  ),
  of(
    'earlier-line',
    'A password has at most {} bytes',
    'runtime/fleet/access/rules/system-account.ts',
    'MAX_BYTES',
  ),
  of(
    'earlier-line',
    'Every check takes at least {} s',
    'runtime/fleet/access/system-password.ts',
    'MIN_CHECK_MS',
    1000,
  ),
  of(
    'earlier-line',
    '({} MiB at most). They lie',
    'runtime/server/earlier/routes/provision.ts',
    'MAX_PROVISION_BYTES',
    MIB,
  ),
  of(
    'earlier-line',
    'policy, or {} hours end it',
    'runtime/server/earlier/machine-line.ts',
    'TOKEN_HOURS',
  ),
  of(
    'earlier-line',
    'The {} newest runs of a machine are kept',
    'runtime/fleet/workflow/workflow-folders.ts',
    'MAX_RUNS',
  ),
  of(
    'earlier-line',
    'A log has at most {} MiB',
    'runtime/fleet/workflow/workflow-folders.ts',
    'MAX_LOG_BYTES',
    MIB,
  ),
  of(
    'several-servers',
    'or a process that hangs, after {} seconds',
    'runtime/fleet/cluster/rules/lease.ts',
    'LEASE_MS',
    1000,
  ),
  of(
    'several-servers',
    'Changes wait for {} seconds',
    'runtime/fleet/cluster/group-commits.ts',
    'HOLD_MS',
    1000,
  ),
  of(
    'several-servers',
    'after {} rounds those that have no order',
    'runtime/server/routes/leaderless.ts',
    'ROUNDS',
  ),
  of(
    'several-servers',
    'Above {} requests under way',
    'runtime/kit/web/http/forwarder.ts',
    'MAX_SOCKETS',
  ),
  of(
    'several-servers',
    'further ones wait for up to {} seconds',
    'runtime/kit/web/http/forwarder.ts',
    'HOLD_MS',
    1000,
  ),
  of('remote', 'If it gets no answer within {} seconds', SITE, 'SILENCE_MS', 1000),
  of('remote', 'asked once more and has {} seconds', SITE, 'TIMEOUT_MS', 1000),
  of(
    'remote',
    'nothing of this applies, and each request has {} seconds',
    SITE,
    'TIMEOUT_MS',
    1000,
  ),
  of(
    'remote',
    'in the live system for {} minutes',
    'runtime/flasher/order/remote-hooks.ts',
    'LIVE_CONTACT_MS',
    MINUTE_MS,
  ),
  of(
    'power',
    'IPMI takes passwords of at most {} bytes',
    'runtime/fleet/power/rules/ipmi.ts',
    'MAX_PASSWORD',
  ),
  of(
    'flash-jobs',
    'a comment every {} seconds keeps proxies',
    'runtime/server/routes/flash-follow.ts',
    'QUIET_MS',
    1000,
  ),
]
