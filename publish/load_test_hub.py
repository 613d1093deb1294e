"""The settings of JupyterHub in `make room`: everything stays on this machine and in one folder."""

import os
import sys
from pathlib import Path

port, hub_port, proxy_port = os.environ["ROOM_PORTS"].split()
folder = Path(os.environ["ROOM_FOLDER"])
environment = Path(sys.prefix)
series = Path(__file__).resolve().parents[1]

c = get_config()  # noqa: F821 (JupyterHub defines it)
c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.hub_port = int(hub_port)
c.JupyterHub.db_url = f"sqlite:///{folder / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(folder / "cookie_secret")
c.ConfigurableHTTPProxy.command = [str(environment / "node_modules" / ".bin" / "configurable-http-proxy")]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.pid_file = str(folder / "proxy.pid")
c.ConfigurableHTTPProxy.auth_token = os.environ["ROOM_TOKEN"]

# Students log in with any password, which is safe because nobody else can reach this machine's own address.
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(folder / "homes" / "{username}")
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
c.Spawner.environment = {"PYTHONPATH": str(series), "OMP_NUM_THREADS": "1"}
c.Spawner.start_timeout = c.Spawner.http_timeout = 300

scopes = ["admin:users", "admin:servers", "access:servers"]
c.JupyterHub.services = [{"name": "room", "api_token": os.environ["ROOM_TOKEN"]}]
c.JupyterHub.load_roles = [{"name": "room", "services": ["room"], "scopes": scopes}]
