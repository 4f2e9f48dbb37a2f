/** What the container images of the servers and their builder share. */

/** The account in the images, which files of the state belong to. */
export const CONTAINER_USER = 990

/** Where the state of flasher-web and flasher-cache is mounted. */
export const CONTAINER_STATE = '/var/lib/flasher'
