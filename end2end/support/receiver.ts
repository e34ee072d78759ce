import { createHmac } from 'node:crypto';
import { type IncomingMessage, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const PREFIX = 'whsec_';
/** How much a timestamp may differ from the clock, in seconds. */
const TOLERANCE_S = 300;

export interface Delivery {
  id: string;
  /** The JSON of the body. */
  event: Record<string, any>;
  /** The secrets that signed it. */
  signedWith: string[];
}

/** A customer's program that receives events. */
export class Receiver {
  readonly deliveries: Delivery[] = [];
  /** The secrets that it knows. Without one it accepts everything, also forged events. */
  secrets: string[] = [];
  /** The status of its answers to events that it doesn't refuse. */
  status = 200;

  private constructor(private readonly server: Server) {}

  static async start(): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server);
    server.on('request', (request, response) => {
      void receiver.answer(request).then((status) => response.writeHead(status).end(`is ${status}`));
    });
    await new Promise<void>((listens) => server.listen(0, '127.0.0.1', listens));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/events`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((stopped) => this.server.close(stopped));
  }

  private async answer(request: IncomingMessage): Promise<number> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const header = (name: string) => String(request.headers[name]);
    const [id, timestamp] = [header('webhook-id'), header('webhook-timestamp')];
    const signatures = header('webhook-signature').split(' ');
    const signedWith = this.secrets.filter((secret) => {
      const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
      const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
      return signatures.includes(`v1,${hmac.digest('base64')}`);
    });
    if (this.secrets.length > 0) {
      if (signedWith.length === 0) return 401;
      if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_S) return 400;
    }
    this.deliveries.push({ id, event: JSON.parse(body.toString()), signedWith });
    return this.status;
  }
}
