/** Has a new system call an address at its first boot, beside what its template says. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import type { FirstBoot } from './seed.ts'

const UNIT_NAME = 'flasher-booted.service'
const STAMP = '/var/lib/flasher-booted'
const TRIES = 20

/**
 * In cloud-init's vendor-data, which leaves the user-data as it is, and as a unit of Ignition.
 * Without a change where `findCallObstacle` has a reason.
 */
export function addProofCall(made: FirstBoot, url: string): FirstBoot {
  const { cloudInit, ignition } = made
  const carries = cloudInit !== null && findUserDataObstacle(cloudInit['user-data']) === null
  return {
    ...made,
    cloudInit: carries ? { ...cloudInit, 'vendor-data': renderVendorData(url) } : cloudInit,
    ignition: ignition === null ? null : (addUnit(ignition, url) ?? ignition),
  }
}

/** A sentence; null: the configuration can carry the call. */
export function findCallObstacle({ cloudInit, ignition }: FirstBoot): string | null {
  if (cloudInit !== null) return findUserDataObstacle(cloudInit['user-data'])
  return ignition !== null && addUnit(ignition, 'http://server.invalid/') === null ? OWN_UNIT : null
}

const OWN_UNIT = `Its text already has a unit ${UNIT_NAME}.`

/** User-data overrides vendor-data. */
function findUserDataObstacle(text: string): string | null {
  if (/^\s*["']?phone_home["']?\s*:/m.test(text)) return 'Its text already has a phone_home.'
  if (/^\s*["']?vendor_data["']?\s*:/m.test(text)) return 'Its text already has a vendor_data.'
  return null
}

/** JSON is YAML: no value can end its string. */
const renderVendorData = (url: string): string =>
  `#cloud-config\n${JSON.stringify({ phone_home: { url, post: ['instance_id'], tries: TRIES } }, null, 2)}\n`

function addUnit(text: string, url: string): string | null {
  const config = parseJson(text)
  if (!isRecord(config)) return null
  const systemd = isRecord(config['systemd']) ? config['systemd'] : {}
  const units: readonly unknown[] = Array.isArray(systemd['units']) ? systemd['units'] : []
  if (units.some((unit) => isRecord(unit) && unit['name'] === UNIT_NAME)) return null
  const unit = { name: UNIT_NAME, enabled: true, contents: renderUnit(url) }
  const merged = { ...config, systemd: { ...systemd, units: [...units, unit] } }
  return `${JSON.stringify(merged, null, 2)}\n`
}

/** A percent sign begins a specifier of systemd. */
const renderUnit = (url: string): string => `[Unit]
Description=Tells the server that this system has booted
ConditionPathExists=!${STAMP}
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
ExecStart=/usr/bin/curl --silent --show-error --fail --request POST --max-time 20 --retry ${TRIES} --retry-delay 10 --retry-all-errors "${url.replaceAll('%', '%%')}"
ExecStartPost=/usr/bin/touch ${STAMP}
[Install]
WantedBy=multi-user.target
`
