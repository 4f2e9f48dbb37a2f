/** The servers as container images. */
import type { Appliance } from './appliance.ts'

export const containers: Appliance = {
  name: 'containers',
  says: 'the servers as container images',
  shape: 'containers',
  archs: ['x86_64'],
}

/** The account in the images, which files of the state belong to. */
export const CONTAINER_USER = 990

/** Where the state of flasher-web and flasher-cache is mounted. */
export const CONTAINER_STATE = '/var/lib/flasher'
