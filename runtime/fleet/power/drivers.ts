/** Chooses the driver of a machine by its way. */
import type { Shell } from '../../kit/host/shell.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { PowerDriver } from './driver.ts'
import { createHookDriver } from './hook-driver.ts'
import { createIpmiDriver } from './ipmi-driver.ts'
import type { FindAddress } from './address-check.ts'
import { createRedfishDriver } from './redfish-driver.ts'
import type { Bmc, Credential, LearnedBmc } from './rules/bmc.ts'
import { createWakeDriver } from './wake-driver.ts'

export interface DriverDependencies {
  readonly shell: Pick<Shell, 'run' | 'has'>
  readonly findAddress: FindAddress
  /** Milliseconds for one request. */
  readonly timeoutMs: number
}

export interface PowerSubject {
  readonly mac: Mac
  readonly bmc: Bmc
  readonly credential: Credential | null
  learned(): LearnedBmc
  learn(change: Partial<LearnedBmc>): Promise<void>
}

export function createDriver(
  { mac, bmc, credential, learned, learn }: PowerSubject,
  { shell, findAddress, timeoutMs }: DriverDependencies,
): PowerDriver {
  const http = {
    findAddress,
    timeoutMs,
    certificate: () => learned().certificate,
    pin: (certificate: string) => learn({ certificate }),
  }
  switch (bmc.way) {
    case 'redfish':
      return createRedfishDriver(bmc, credential, http)
    case 'ipmi':
      return createIpmiDriver(bmc, credential, {
        shell,
        findAddress,
        timeoutMs,
        suite: () => learned().suite,
        keepSuite: (suite) => learn({ suite }),
      })
    case 'wake-on-lan':
      return createWakeDriver(bmc, mac, findAddress)
    case 'hook':
      return createHookDriver(bmc, { mac, credential }, http)
  }
}
